import { createHash, createPublicKey } from 'node:crypto'
import { readReleaseSigningKey } from '@platform/local/generated-secrets'
import { isSignatureValid } from '@platform/oci/signature/key'
import { expect, test } from 'vitest'
import { expectStatus } from '../conformance/support/answer.ts'
import { waitForJobEnd } from '../conformance/support/modules.ts'
import { failpointsIn } from '../support/failpoints.ts'
import { PlatformProcess } from '../support/platform.ts'
import { builtFunctions, publishRelease, releaseHeader } from '../support/releases.ts'
import { Traffic } from '../support/traffic.ts'
import { waitFor } from '../support/wait-for.ts'

const updates = '/api/v1/platform/updates'

async function startUpdatable(settings: Record<string, string> = {}) {
  const platform = await PlatformProcess.start({ PLAT_UPDATE_BAKE_SECONDS: '1', ...settings })
  const api = await platform.setUp()
  const admin = await api.admin
  return {
    platform,
    api,
    admin,
    check: async () => expectStatus(await admin.get(`${updates}/check`), 200),
    apply: (body: object) => admin.put(`${updates}/apply`, body),
    [Symbol.asyncDispose]: () => platform[Symbol.asyncDispose](),
  }
}
type Updatable = Awaited<ReturnType<typeof startUpdatable>>

test('a published release is announced once, applied and rolled back without a failed request', async () => {
  await using updatable = await startUpdatable()
  const { platform, api, admin, check, apply } = updatable
  const releaseNotesUrl = 'https://example.com/9.1.0'
  const { currentVersion, ...stateBefore } = await check()
  expect(stateBefore).toMatchObject({ latestVersion: currentVersion, updateAvailable: false, refused: [] })
  const command = `npm run -s release -- --version 9.1.0 --notes-url ${releaseNotesUrl}`
  expect(await platform.command(command)).toMatch(
    /platform\/releases:9\.1\.0 was published: sha256:[0-9a-f]{64}, after /,
  )
  expect(await platform.command(command)).toMatch(/9\.1\.0 was already published: sha256:/)
  await expect(platform.command(`SOURCE_DATE_EPOCH=0 ${command}`)).rejects.toMatchObject({
    code: 1,
    stderr: expect.stringMatching(/9\.1\.0 already exists with other content/),
  })
  for (let time = 0; time < 2; time++) {
    expect(await check()).toMatchObject({ latestVersion: '9.1.0', updateAvailable: true, releaseNotesUrl, refused: [] })
  }
  const readNotifications = async (): Promise<any[]> =>
    expectStatus(await admin.get('/api/v1/notifications'), 200).items.filter(
      ({ type }: any) => type === 'UpdateAvailable',
    )
  await waitFor('the notification', async () => (await readNotifications()).length > 0)
  expect(await readNotifications()).toHaveLength(1)

  const relay = await api.newRelay()
  const { jobId, leaseId } = await api.startJob(relay)
  const request = { action: 'apply', targetVersion: '9.1.0' }
  expectStatus(await apply(request), 409, 'active_jobs')
  await using traffic = await Traffic.start(api, 10)
  await traffic.waitForMore(100)
  const acceptedUpdate = expectStatus(await apply({ ...request, force: true }), 202)
  expect(acceptedUpdate).toMatchObject({ ...request, status: 'InProgress' })
  expectStatus(await apply({ ...request, force: true }), 409, 'update_in_progress')
  expectStatus(await apply({ action: 'rollback', force: true }), 409, 'update_in_progress')
  expect((await check()).jobId).toBe(acceptedUpdate.jobId)
  expect(await waitForJobEnd(api, acceptedUpdate)).toMatchObject({ status: 'Completed', type: 'PlatformUpdate' })
  expect(await check()).toMatchObject({ currentVersion: '9.1.0', previousVersion: currentVersion })
  await traffic.waitForMore(100)
  expectStatus(await apply({ ...request, force: true }), 422, 'version_not_available')

  const beat = async (state = {}) => expectStatus(await relay.heartbeat({ running: [jobId], ...state }), 200)
  // Keeps the cluster online: a relay update that waits only for offline clusters checks them once a minute.
  await beat()
  const body = { target: { clusterIds: [relay.clusterId] }, version: '9.1.0' }
  const { id } = expectStatus(await admin.post('/api/v1/relay-updates', body), 201)
  const { version, sha256, signature } = await waitFor('the offer', async () => (await beat()).update)
  const file = Buffer.from(await (await fetch(`${platform.url}/relay/relay.mjs`)).arrayBuffer())
  const key = createPublicKey(await readReleaseSigningKey(platform.dataDir))
  expect([version, sha256]).toEqual(['9.1.0', createHash('sha256').update(file).digest('hex')])
  expect(isSignatureValid(key, file, Buffer.from(signature, 'base64'))).toBe(true)
  await beat({ update: { id, status: 'completed' } })
  await waitFor('the end of the relay update', async () => {
    const { status } = expectStatus(await admin.get(`/api/v1/relay-updates/${id}`), 200)
    return status === 'Completed'
  })

  const rollback = await waitForJobEnd(api, expectStatus(await apply({ action: 'rollback', force: true }), 202))
  expect(rollback).toMatchObject({ status: 'Completed', type: 'PlatformRollback' })
  expect((await check()).currentVersion).toBe(currentVersion)
  await traffic.waitForMore(100)
  expect(traffic.failures).toEqual([])
  expectStatus(await relay.complete(jobId, leaseId, 0), 200)
  expect((await api.job(jobId)).status).toBe('Completed')
}, 900_000)

// The smoke test passes these releases: only requests of users reveal the error.
test('rolls back a release that fails, throws or hangs for signed-in users', { timeout: 900_000 }, async () => {
  await using updatable = await startUpdatable({ PLAT_UPDATE_BAKE_SECONDS: '3', PLAT_LOG_LEVEL: 'error' })
  const { platform, api, admin, check, apply } = updatable
  const { currentVersion } = await check()
  for (const [version, change] of [
    ['9.0.2', 'fails for users'],
    ['9.0.3', 'throws for users'],
    ['9.0.4', 'hangs for users'],
  ] as const) {
    await publishRelease(platform, { version }, await builtFunctions(version, change))
    await using traffic = await Traffic.start(api, 10)
    await traffic.waitForMore(50)
    const { jobId } = expectStatus(await apply({ action: 'apply', targetVersion: version }), 202)
    const finishedJob = async () => {
      // The release may fail this request.
      const { status, body } = await admin.get(`/api/v1/jobs/${jobId}`)
      return status === 200 && body.completedAt !== undefined && body
    }
    const job = await waitFor('the end of the update', finishedJob, 200)
    await traffic.waitForPending()
    expect(traffic.failures.length).toBeGreaterThan(0)
    expect(job).toMatchObject({ status: 'Failed', type: 'PlatformUpdate' })
    // On a slow machine too few requests reach the release at 10 %.
    expect(job.result.output).toMatch(/failed \d+ times in \d+ s at [15]0 %, version \S+ \d+ times in the same time\./)
    expect(await check()).toMatchObject({ currentVersion, latestVersion: version })
    traffic.failures = []
    await traffic.waitForMore(200)
    expect(traffic.failures).toEqual([])
    await waitFor('the notification', async () => {
      const { items } = expectStatus(await admin.get('/api/v1/notifications'), 200)
      return items.some(({ type, body }: any) => type === 'UpdateFailed' && body.startsWith(`Version ${version}`))
    })
  }
})

const paths = [
  '/health/ready',
  '/api/v1/openapi.json',
  ...['auth/me', 'clusters', 'sites', 'jobs', 'notifications', 'users', 'webhooks', 'modules'].map(
    (name) => `/api/v1/${name}`,
  ),
  ...['organisations', 'audit', 'identity/providers', 'updates/check'].map((name) => `/api/v1/platform/${name}`),
]

async function expectVersion({ admin, check }: Updatable, version: string | undefined, current: string): Promise<void> {
  const calls = [...paths, ...paths, ...paths, ...paths].map(async (path) => {
    const response = await admin.get(path)
    expectStatus(response, 200)
    return response.headers.get(releaseHeader) ?? undefined
  })
  expect(new Set(await Promise.all(calls))).toEqual(new Set([version]))
  const { currentVersion, jobId } = await check()
  expect([currentVersion, jobId]).toEqual([current, undefined])
}

const killPoints: readonly (readonly [apply: string[], rollback: string[]])[] = [
  [
    ['update.staged', 'update.tested', 'update.shifted-10'],
    ['update.staged', 'update.tested'],
  ],
  [
    ['update.shifted-50', 'update.shifted-100', 'update.committed'],
    ['update.shifted-100', 'update.committed'],
  ],
]

test('an update completes after a kill at every step, with one version everywhere', { timeout: 900_000 }, async () => {
  await using updatable = await startUpdatable({ PLAT_OPERATION_LEASE_SECONDS: '3' })
  const { platform, api, check, apply } = updatable
  await publishRelease(platform, { version: '9.1.0' }, await builtFunctions('9.1.0', 'reports version'))
  await publishRelease(platform, { version: '9.2.0' }, await builtFunctions('9.2.0', 'fails'))
  const { currentVersion } = await check()
  const hit: string[] = []

  const runWithKills = async (points: readonly string[], request: object): Promise<any> => {
    let acceptedUpdate: any
    for (const [index, point] of points.entries()) {
      await platform.kill()
      await platform.restart({ PLAT_FAILPOINT: `${point}=kill` })
      if (index === 0) acceptedUpdate = expectStatus(await apply(request), 202)
      await platform.ended
      expect(platform.text).toContain(`failpoint ${point}`)
      hit.push(point)
    }
    await platform.restart()
    const job = await waitForJobEnd(api, acceptedUpdate)
    expect(job.steps.filter(({ status }: any) => ['Pending', 'Running'].includes(status))).toEqual([])
    return job
  }

  for (const [applyPoints, rollbackPoints] of killPoints) {
    const applyResult = await runWithKills(applyPoints, { action: 'apply', targetVersion: '9.1.0' })
    expect(applyResult, JSON.stringify(applyResult)).toMatchObject({ status: 'Completed' })
    await expectVersion(updatable, '9.1.0', '9.1.0')
    const rolledBack = await runWithKills(rollbackPoints, { action: 'rollback' })
    expect(rolledBack, JSON.stringify(rolledBack)).toMatchObject({ status: 'Completed' })
    await expectVersion(updatable, undefined, currentVersion)
  }
  const failedUpdate = await runWithKills(['update.reverted'], { action: 'apply', targetVersion: '9.2.0' })
  expect(failedUpdate, JSON.stringify(failedUpdate)).toMatchObject({ status: 'Failed' })
  await expectVersion(updatable, undefined, currentVersion)

  const shifts = [10, 50, 100].map((share) => `update.shifted-${share}`)
  expect(new Set(hit)).toEqual(new Set([...failpointsIn('packages/worker/src/updates'), ...shifts]))
})
