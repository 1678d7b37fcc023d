import { expect, test } from 'vitest'
import { expectStatus } from '../conformance/support/answer.ts'
import type { Client } from '../conformance/support/client.ts'
import { over } from '../conformance/support/modules.ts'
import type { Platform } from '../conformance/support/platform.ts'
import { failpointsIn } from '../support/failpoints.ts'
import { PlatformProcess } from '../support/platform.ts'
import { builtFunctions, failingHalfTheTime, published, releaseHeader, telling } from '../support/releases.ts'

/** A platform that dies again and again while it is updated. */
interface World {
  platform: PlatformProcess
  api: Platform
  admin: Client
  /** The places where it has died. */
  struck: string[]
}

const updates = '/api/v1/platform/updates'

/** Where it dies on the way to a version, and on the way back. */
const rounds: readonly (readonly [there: string[], back: string[]])[] = [
  [
    ['update.staged', 'update.tested', 'update.shifted-10'],
    ['update.staged', 'update.tested'],
  ],
  [
    ['update.shifted-50', 'update.shifted-100', 'update.committed'],
    ['update.shifted-100', 'update.committed'],
  ],
]

/** One for each of most functions that answer requests. */
const paths = [
  '/health/ready',
  '/api/v1/openapi.json',
  ...['auth/me', 'clusters', 'sites', 'jobs', 'notifications', 'users', 'webhooks', 'modules'].map(
    (it) => `/api/v1/${it}`,
  ),
  ...['organisations', 'audit', 'identity/providers', 'updates/check'].map((it) => `/api/v1/platform/${it}`),
]

/** The version that everything answers as: that of a release, or undefined for the functions of the checkout. */
async function expectEverywhere({ admin }: World, version: string | undefined, shown: string): Promise<void> {
  const asked = [...paths, ...paths, ...paths, ...paths].map(async (path) => {
    const answer = await admin.get(path)
    expectStatus(answer, 200)
    return answer.headers.get(releaseHeader) ?? undefined
  })
  expect(new Set(await Promise.all(asked))).toEqual(new Set([version]))
  const { currentVersion, jobId } = expectStatus(await admin.get(`${updates}/check`), 200)
  expect([currentVersion, jobId]).toEqual([shown, undefined])
}

/** Has the platform die at some places, one after another, while it does what it is asked for; answers how the job ended. */
async function surviving(world: World, places: readonly string[], ask: object): Promise<any> {
  const { platform, api, admin, struck } = world
  let accepted: any
  for (const [index, place] of places.entries()) {
    await platform.kill()
    await platform.restart({ PLAT_FAILPOINT: `${place}=kill` })
    if (index === 0) accepted = expectStatus(await admin.put(`${updates}/apply`, ask), 202)
    await platform.ended
    expect(platform.text).toContain(`failpoint ${place}`)
    struck.push(place)
  }
  await platform.restart()
  const job = await over(api, accepted)
  expect(job.steps.filter((step: any) => ['Pending', 'Running'].includes(step.status))).toEqual([])
  return job
}

async function startWorld(): Promise<World & AsyncDisposable> {
  const platform = await PlatformProcess.start({
    PLAT_UPDATE_BAKE_SECONDS: '1',
    PLAT_OPERATION_LEASE_SECONDS: '3',
  })
  const dispose = () => platform[Symbol.asyncDispose]()
  const api = await platform.setUp()
  await published(platform, { version: '9.1.0' }, await builtFunctions('9.1.0', telling))
  return { platform, api, admin: await api.admin, struck: [], [Symbol.asyncDispose]: dispose }
}

// The tests of updates break off at each place as well, and those of the runner kill that.
test('wherever kill -9 strikes, an update ends, and all is of one version', { timeout: 900_000 }, async () => {
  await using world = await startWorld()
  const { platform, admin } = world
  const { currentVersion: old } = expectStatus(await admin.get(`${updates}/check`), 200)
  await published(platform, { version: '9.2.0' }, await builtFunctions('9.2.0', failingHalfTheTime))

  for (const [there, back] of rounds) {
    const job = await surviving(world, there, { action: 'apply', targetVersion: '9.1.0' })
    expect(job, JSON.stringify(job)).toMatchObject({ status: 'Completed' })
    await expectEverywhere(world, '9.1.0', '9.1.0')

    const taken = await surviving(world, back, { action: 'rollback' })
    expect(taken, JSON.stringify(taken)).toMatchObject({ status: 'Completed' })
    await expectEverywhere(world, undefined, old)
  }
  const broken = await surviving(world, ['update.reverted'], { action: 'apply', targetVersion: '9.2.0' })
  expect(broken, JSON.stringify(broken)).toMatchObject({ status: 'Failed' })
  await expectEverywhere(world, undefined, old)

  const shifts = [10, 50, 100].map((share) => `update.shifted-${share}`)
  expect(new Set(world.struck)).toEqual(new Set([...failpointsIn('packages/worker/src/updates'), ...shifts]))
  console.log(`${world.struck.length} kills: the version was the old or the new one each time.`)
})
