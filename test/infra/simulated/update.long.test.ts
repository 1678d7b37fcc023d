import { GetAliasCommand } from '@aws-sdk/client-lambda'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { expectStatus } from '../../conformance/support/answer.ts'
import type { Client } from '../../conformance/support/client.ts'
import { over } from '../../conformance/support/modules.ts'
import { waitFor } from '../../support/wait-for.ts'
import { artifactOf } from '../../../scripts/release/artifact.ts'
import { publish } from '../../../scripts/release/publish.ts'
import { builtFunctions, failingHalfTheTime, releaseHeader, telling } from '../../support/releases.ts'
import { type SimulatedPlatform, startSimulatedPlatform } from '../../support/simulator.ts'
import { Traffic } from '../../support/traffic.ts'

/**
 * Releases as versions of functions behind their alias, with no more rights than the deployment gives. One test follows another.
 * By default the tests of the code show updates, and those of the grants that the deployment allows what an update begins with.
 */

const updates = '/api/v1/platform/updates'
let stage: SimulatedPlatform
let admin: Client
let deployed: string

beforeAll(async () => {
  stage = await startSimulatedPlatform({ PLAT_UPDATE_BAKE_SECONDS: '1', ...roomy })
  admin = await stage.api.admin
  deployed = (await check()).currentVersion
}, 180_000)
afterAll(() => stage[Symbol.asyncDispose]())

/** Clients call as fast as they are answered. */
const roomy = { PLAT_LIMIT_API_PER_MINUTE: '60000', PLAT_LIMIT_API_BURST: '5000' }

const check = async () => expectStatus(await admin.get(`${updates}/check`), 200)
const done = async (ask: object) => over(stage.api, expectStatus(await admin.put(`${updates}/apply`, ask), 202))

/** Puts a release where the deployment looks for it. */
async function released(version: string, change: Parameters<typeof builtFunctions>[1]): Promise<void> {
  const { client, name, privateKeyPem } = stage.simulator.releases
  const facts = { version, createdAt: '2026-01-01T00:00:00.000Z' }
  await publish({ client, name }, artifactOf(facts, await builtFunctions(version, change)), privateKeyPem)
}

/** Where the aliases lead: function → version and shares. */
async function places(): Promise<(readonly [string | undefined, object | undefined])[]> {
  const { functions, cloud } = stage.simulator
  return Promise.all(
    functions.map(async ({ functionName: FunctionName, alias: Name }) => {
      const { FunctionVersion, RoutingConfig } = await cloud.lambda.send(new GetAliasCommand({ FunctionName, Name }))
      return [FunctionVersion, RoutingConfig] as const
    }),
  )
}

test('the clock finds a release, and the administrator is told of it', async () => {
  expect(await check()).toMatchObject({ latestVersion: deployed, updateAvailable: false })
  await released('9.1.0', telling)
  await stage.tick('schedule/updates')
  expect(await check()).toMatchObject({ latestVersion: '9.1.0', updateAvailable: true, refused: [] })
  await waitFor('the administrator is told', async () => {
    const { items } = expectStatus(await admin.get('/api/v1/notifications'), 200)
    return items.some(({ type }: any) => type === 'UpdateAvailable')
  })
}, 180_000)

/** Which releases answer just now. */
async function answering(): Promise<Set<string | null>> {
  const answers = await Promise.all(Array.from({ length: 10 }, () => admin.get('/api/v1/clusters')))
  for (const answer of answers) expectStatus(answer, 200)
  return new Set(answers.map(({ headers }) => headers.get(releaseHeader)))
}

test('it is applied, a share after the other, while people call: not one request fails', async () => {
  await using traffic = await Traffic.start(stage.api, 2)
  await traffic.more(20)
  const accepted = expectStatus(await admin.put(`${updates}/apply`, { action: 'apply', targetVersion: '9.1.0' }), 202)
  await waitFor('both versions answer', async () => (await answering()).size === 2, 150)
  const applied = await over(stage.api, accepted)
  expect(applied, JSON.stringify(applied)).toMatchObject({ status: 'Completed', type: 'PlatformUpdate' })
  expect(await check()).toMatchObject({ currentVersion: '9.1.0', previousVersion: deployed })
  expect(await answering()).toEqual(new Set(['9.1.0']))
  expect(new Set((await places()).map(([version]) => version))).toEqual(new Set(['2']))
  await traffic.more(20)
  expect(traffic.failures).toEqual([])
  expect(stage.simulator.cloud.gate.denials).toEqual([])
}, 300_000)

test('it is taken back while people call: not one request fails', async () => {
  await using traffic = await Traffic.start(stage.api, 2)
  await traffic.more(20)
  const back = await done({ action: 'rollback' })
  expect(back, JSON.stringify(back)).toMatchObject({ status: 'Completed', type: 'PlatformRollback' })
  expect((await check()).currentVersion).toBe(deployed)
  expect(await answering()).toEqual(new Set([null]))
  expect(await places()).toEqual(stage.simulator.functions.map(() => ['1', undefined]))
  await traffic.more(20)
  expect(traffic.failures).toEqual([])
  expect(stage.simulator.cloud.gate.denials).toEqual([])
}, 180_000)

test('a release that fails serves nobody', async () => {
  await released('9.2.0', failingHalfTheTime)
  const job = await done({ action: 'apply', targetVersion: '9.2.0' })
  expect(job).toMatchObject({ status: 'Failed', type: 'PlatformUpdate' })
  expect(await places()).toEqual(stage.simulator.functions.map(() => ['1', undefined]))
  expect((await check()).currentVersion).toBe(deployed)
  expect(stage.simulator.cloud.gate.denials).toEqual([])
}, 180_000)
