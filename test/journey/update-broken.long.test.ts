import { expect, test } from 'vitest'
import { expectStatus } from '../conformance/support/answer.ts'
import { PlatformProcess } from '../support/platform.ts'
import { builtFunctions, failingForUsers, hangingForUsers, published, throwingForUsers } from '../support/releases.ts'
import { Traffic } from '../support/traffic.ts'
import { waitFor } from '../support/wait-for.ts'

const updates = '/api/v1/platform/updates'

// The smoke test passes these releases: only the requests of users find the error.
test('rolls back automatically a release that fails, throws or hangs for signed-in users', async () => {
  await using platform = await PlatformProcess.start({ PLAT_UPDATE_BAKE_SECONDS: '3', PLAT_LOG_LEVEL: 'error' })
  const api = await platform.setUp()
  const admin = await api.admin
  const check = async () => expectStatus(await admin.get(`${updates}/check`), 200)
  const { currentVersion } = await check()
  for (const [version, change] of [
    ['9.0.2', failingForUsers],
    ['9.0.3', throwingForUsers],
    ['9.0.4', hangingForUsers],
  ] as const) {
    await published(platform, { version }, await builtFunctions(version, change))
    await using traffic = await Traffic.start(api, 10)
    await traffic.more(50)
    const apply = { action: 'apply', targetVersion: version }
    const { jobId } = expectStatus(await admin.put(`${updates}/apply`, apply), 202)
    const isFinished = async () => {
      // The release may fail this request, too.
      const { status, body } = await admin.get(`/api/v1/jobs/${jobId}`)
      return status === 200 && body.completedAt !== undefined && body
    }
    const job = await waitFor('the update to finish', isFinished, 200)
    await traffic.settled()
    expect(traffic.failures.length).toBeGreaterThan(0)
    expect(job).toMatchObject({ status: 'Failed', type: 'PlatformUpdate' })
    // On a slow machine too few requests meet the release at 10 %.
    expect(job.result.output).toMatch(/failed \d+ times in \d+ s at [15]0 %, version \S+ \d+ times in the same time\./)
    expect(job.result.output).toContain(`Version ${version} failed`)
    expect(await check()).toMatchObject({ currentVersion, latestVersion: version })
    traffic.failures = []
    await traffic.more(200)
    expect(traffic.failures).toEqual([])
    await waitFor('the notification', async () => {
      const { items } = expectStatus(await admin.get('/api/v1/notifications'), 200)
      return items.some(({ type, body }: any) => type === 'UpdateFailed' && body.startsWith(`Version ${version}`))
    })
  }
})
