import { setTimeout as delay } from 'node:timers/promises'
import { functionNames } from '@platform/core/updates/function-names'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { expectStatus } from '../../conformance/support/answer.ts'
import type { Client } from '../../conformance/support/client.ts'
import { over } from '../../conformance/support/modules.ts'
import { waitFor } from '../../support/wait-for.ts'
import { isLong } from '../../support/long.ts'
import { giveCredentials, startPrivateRegistry } from '../../support/private-registry.ts'
import { type SimulatedPlatform, startSimulatedPlatform } from '../../support/simulator.ts'
import { startReleaseRegistry } from '../../support/release.ts'
import { catalogScan } from './grants/conformance.ts'
import { sendTo } from './grants/lost-messages.ts'
import { byFunction, releaseGrants } from './grants/module-needs.ts'
import { type Act, playAlone, played, type Scene, without } from './grants/withholding.ts'

/** Least privilege where releases come in: without any one of these grants something is missed that the platform promises. */

const resources = new AsyncDisposableStack()
let registry: Awaited<ReturnType<typeof startReleaseRegistry>>
let stage: SimulatedPlatform
let scene: Scene
let admin: Client
let releases = 0
let host: string

if (isLong) {
  beforeAll(async () => {
    registry = resources.use(await startReleaseRegistry())
    const guarded = resources.use(await startPrivateRegistry(registry.host))
    host = guarded.host
    stage = resources.use(
      await startSimulatedPlatform({
        PLAT_REGISTRY_ALLOW: guarded.host,
        PLAT_RELEASE_SOURCE: `${guarded.host}/${registry.repository}`,
        PLAT_RELEASE_KEYS: registry.settings.PLAT_RELEASE_KEYS,
        PLAT_OUTBOX_RETRY_SECONDS: '1',
        PLAT_OPERATION_LEASE_SECONDS: '3',
        PLAT_LIMIT_API_PER_MINUTE: '60000',
        PLAT_LIMIT_API_BURST: '5000',
      }),
    )
    const { simulator, api: platform, tick } = stage
    scene = { simulator, platform, tick }
    admin = await platform.admin
    await giveCredentials(simulator, guarded)
  }, 300_000)
}
afterAll(() => resources.disposeAsync())

const updates = '/api/v1/platform/updates'

/** Pushes a newer release: one of a few functions, which can be found and not applied. */
async function pushed(functions?: Record<string, string>): Promise<string> {
  const version = `9.${++releases}.0`
  await registry.push(version, functions === undefined ? {} : { functions })
  return version
}

const isTold = (version: string) =>
  waitFor(`somebody is told of ${version}`, async () => {
    const { items } = expectStatus(await admin.get('/api/v1/notifications?pageSize=100'), 200)
    return items.some(({ type, resource }: any) => type === 'UpdateAvailable' && resource === version)
  })

const checked: Act = {
  title: 'a check tells of a release in a private registry, and people are told of it',
  play: async () => {
    const version = await pushed()
    expect(expectStatus(await admin.get(`${updates}/check`), 200)).toMatchObject({ latestVersion: version })
    await isTold(version)
  },
}

const ticked: Act = {
  title: 'the clock finds a release in a private registry, and people are told of it',
  play: async () => {
    const version = await pushed()
    await stage.tick('schedule/updates')
    await isTold(version)
  },
}

const begin = async (targetVersion: string): Promise<string> =>
  expectStatus(await admin.put(`${updates}/apply`, { action: 'apply', targetVersion }), 202).jobId

/** How an update that cannot be done ends: with a reason, told, and with the platform as it was. */
async function endsFailed(jobId: string, reason: RegExp): Promise<void> {
  const job = await over(stage.api, { jobId })
  expect(job).toMatchObject({ status: 'Failed', result: { output: expect.stringMatching(reason) } })
  await waitFor('it is told', async () => {
    const { items } = expectStatus(await admin.get('/api/v1/notifications?pageSize=100'), 200)
    return items.some(({ resource }: any) => resource === jobId)
  })
}

const refused: Act = {
  title: 'an update to a release of other functions fails, and says so',
  play: async () => endsFailed(await begin(await pushed()), /other functions/),
}

/** No two releases have the same code. */
const allBroken = () =>
  Object.fromEntries(
    functionNames.map((name) => [
      name,
      `export const handler = async () => { throw new Error('broken') } // ${crypto.randomUUID()}\n`,
    ]),
  )

const staged: Act = {
  title: 'an update to a release that does not run is staged, and fails where it is tried',
  play: async () => endsFailed(await begin(await pushed(allBroken())), /^Function \S+ of version \S+ fails/),
}

const unheard = (version: string): Promise<string> => without(scene, ['updates', 'queue:updates'], () => begin(version))

const swept: Act = {
  title: 'the sweep announces an update whose message was lost',
  play: async () => {
    const jobId = await unheard(await pushed())
    await waitFor('it is over', async () => {
      await stage.tick('schedule/sweep')
      return (await stage.api.job(jobId)).completedAt !== undefined
    })
  },
}

const buried: Act = {
  title: 'an update whose message ends in the dead-letter queue fails, and the platform is as it was',
  play: async () => {
    const jobId = await unheard(await pushed())
    const { organisationId } = expectStatus(await admin.get('/api/v1/auth/me'), 200)
    await sendTo(scene, 'updates-dead-letter', { organisationId, jobId })
    await endsFailed(jobId, /could not be handled/)
  },
}

const looked: Act = {
  title: 'whoever names an image of a private registry hears that there is none',
  play: async () => {
    const answer = await admin.post('/api/modules/install', { imageRef: `${host}/modules/none:1.0.0` })
    expect([answer.status, answer.body.error]).toEqual([422, 'image_unreachable'])
  },
}

/** What was broken off is given up. */
const healed = () =>
  waitFor('no update is under way', async () => {
    const { organisationId } = expectStatus(await admin.get('/api/v1/auth/me'), 200)
    const { jobId } = expectStatus(await admin.get(`${updates}/check`), 200)
    if (jobId === undefined) return true
    await sendTo(scene, 'updates-dead-letter', { organisationId, jobId })
    for (let looks = 0; looks < 10 && (await stage.api.job(jobId)).completedAt === undefined; looks++) {
      await delay(100)
    }
    return false
  })

const store = ['table:read', 'table:write']

/** An act, function → grants that it needs. */
const table: [act: Act, grants: Record<string, readonly string[]>][] = [
  [looked, { modules: ['secret:registries'] }],
  [catalogScan, { modules: ['queue:events'] }],
  [checked, { updates: [...store, 'secret:registries', 'queue:events'] }],
  [ticked, { 'schedule/updates': [...store, 'secret:registries', 'queue:events'] }],
  [refused, { updates: ['queue:updates'], 'queue/updates': ['functions:revert', 'queue:events'] }],
  [staged, { 'queue/updates': ['functions:update'] }],
  [swept, { 'schedule/sweep': ['queue:updates'] }],
  [buried, { 'queue/updates-dead-letter': [...store, 'queue:events', 'messages'] }],
]

test('these are the grants that stand for releases', () => {
  expect(byFunction(...table.map(([, grants]) => grants))).toEqual(byFunction(releaseGrants))
})

for (const [act, grants] of table) {
  const needs = Object.entries(grants).flatMap(([name, each]) => each.map((grant) => ({ name, grant, act })))

  test.runIf(isLong)(
    `without any one of its grants this is missed: ${act.title}`,
    async () => {
      expect(await played(scene, act)).toBeUndefined()
      for (const need of needs) {
        const { failure, denials } = await playAlone(scene, need, healed)
        expect([need.name, need.grant, failure]).toEqual([need.name, need.grant, expect.any(String)])
        expect(denials, `${need.name} ${need.grant}`).not.toEqual([])
      }
      expect(await played(scene, act)).toBeUndefined()
    },
    300_000,
  )
}
