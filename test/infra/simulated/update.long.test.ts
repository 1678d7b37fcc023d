import { GetAliasCommand } from '@aws-sdk/client-lambda'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { expectStatus } from '../../conformance/support/answer.ts'
import type { Client } from '../../conformance/support/client.ts'
import { waitForJobEnd } from '../../conformance/support/modules.ts'
import { waitFor } from '../../support/wait-for.ts'
import { artifactOf } from '../../../scripts/release/artifact.ts'
import { publish } from '../../../scripts/release/publish.ts'
import { builtFunctions, releaseHeader } from '../../support/releases.ts'
import { type SimulatedPlatform, startSimulatedPlatform } from '../../support/simulator.ts'
import { Traffic } from '../../support/traffic.ts'
import { unusedActions, unusedGrantsOf } from '../grant.ts'
import { releaseGrants } from './grants/exceptions.ts'
import { sendTo, sweepUntil, withoutGrant } from './grants/lost-messages.ts'

/** Releases as function versions behind an alias, with the roles of the deployment. Tests build on earlier ones. */

const updates = '/api/v1/platform/updates'
const settings = {
  PLAT_UPDATE_BAKE_SECONDS: '1',
  PLAT_OUTBOX_RETRY_SECONDS: '1',
  PLAT_LIMIT_API_PER_MINUTE: '60000',
  PLAT_LIMIT_API_BURST: '5000',
}
let environment: SimulatedPlatform
let admin: Client
let initialVersion: string

beforeAll(async () => {
  environment = await startSimulatedPlatform(settings)
  admin = await environment.api.admin
  initialVersion = (await check()).currentVersion
})
afterAll(() => environment[Symbol.asyncDispose]())

const check = async () => expectStatus(await admin.get(`${updates}/check`), 200)
const apply = async (request: object): Promise<{ jobId: string }> =>
  expectStatus(await admin.put(`${updates}/apply`, request), 202)
const jobOf = async (request: object) => waitForJobEnd(environment.api, await apply(request))

async function release(version: string, change: Parameters<typeof builtFunctions>[1]): Promise<void> {
  const { client, name, privateKeyPem } = environment.simulator.releases
  const facts = { version, createdAt: '2026-01-01T00:00:00.000Z', releaseNotesUrl: 'https://example.com/notes' }
  await publish({ client, name }, artifactOf(facts, await builtFunctions(version, change)), privateKeyPem)
}

async function readAliases(): Promise<(readonly [string | undefined, object | undefined])[]> {
  const { functions, cloud } = environment.simulator
  return Promise.all(
    functions.map(async ({ functionName: FunctionName, alias: Name }) => {
      const { FunctionVersion, RoutingConfig } = await cloud.lambda.send(new GetAliasCommand({ FunctionName, Name }))
      return [FunctionVersion, RoutingConfig] as const
    }),
  )
}
const initialAliases = () => environment.simulator.functions.map(() => ['1', undefined])

const hasNotification = (isExpected: (notification: any) => boolean) => async (): Promise<boolean> =>
  expectStatus(await admin.get('/api/v1/notifications?pageSize=100'), 200).items.some(isExpected)

test('finds a release on schedule and notifies the administrator', async () => {
  expect(await check()).toMatchObject({ latestVersion: initialVersion, updateAvailable: false })
  await release('9.1.0', 'reports version')
  await environment.tick('schedule/updates')
  expect(await check()).toMatchObject({ latestVersion: '9.1.0', updateAvailable: true, refused: [] })
  await waitFor(
    'the notification',
    hasNotification(({ type }) => type === 'UpdateAvailable'),
  )
})

async function respondingReleases(): Promise<Set<string | null>> {
  const responses = await Promise.all(Array.from({ length: 10 }, () => admin.get('/api/v1/clusters')))
  for (const response of responses) expectStatus(response, 200)
  return new Set(responses.map(({ headers }) => headers.get(releaseHeader)))
}

test('shifts traffic to the release step by step without a failed request', async () => {
  await using traffic = await Traffic.start(environment.api, 2)
  await traffic.waitForMore(20)
  const acceptedUpdate = await apply({ action: 'apply', targetVersion: '9.1.0' })
  await waitFor('both versions to respond', async () => (await respondingReleases()).size === 2, 150)
  const job = await waitForJobEnd(environment.api, acceptedUpdate)
  expect(job, JSON.stringify(job)).toMatchObject({ status: 'Completed', type: 'PlatformUpdate' })
  expect(await check()).toMatchObject({ currentVersion: '9.1.0', previousVersion: initialVersion })
  expect(await respondingReleases()).toEqual(new Set(['9.1.0']))
  expect(new Set((await readAliases()).map(([version]) => version))).toEqual(new Set(['2']))
  await traffic.waitForMore(20)
  expect(traffic.failures).toEqual([])
})

test('rolls back without a failed request', async () => {
  await using traffic = await Traffic.start(environment.api, 2)
  await traffic.waitForMore(20)
  const job = await jobOf({ action: 'rollback' })
  expect(job, JSON.stringify(job)).toMatchObject({ status: 'Completed', type: 'PlatformRollback' })
  expect((await check()).currentVersion).toBe(initialVersion)
  expect(await respondingReleases()).toEqual(new Set([null]))
  expect(await readAliases()).toEqual(initialAliases())
  await traffic.waitForMore(20)
  expect(traffic.failures).toEqual([])
})

const applyUnannounced = (targetVersion: string) =>
  withoutGrant(environment.simulator, ['updates', 'queue:updates'], () => apply({ action: 'apply', targetVersion }))

test('sweeps an update whose message was lost, and serves no request with a failing release', async () => {
  await release('9.2.0', 'fails')
  const { jobId } = await applyUnannounced('9.2.0')
  const isCompleted = async () => (await environment.api.job(jobId)).completedAt !== undefined
  await sweepUntil(environment, 'the update to end', isCompleted)
  expect(await environment.api.job(jobId)).toMatchObject({ status: 'Failed', type: 'PlatformUpdate' })
  expect(await readAliases()).toEqual(initialAliases())
  expect((await check()).currentVersion).toBe(initialVersion)
})

test('fails an update whose message was dead-lettered, and notifies the administrator', async () => {
  const { jobId } = await applyUnannounced('9.1.0')
  const { organisationId } = expectStatus(await admin.get('/api/v1/auth/me'), 200)
  await sendTo(environment.simulator, 'updates-dead-letter', { organisationId, jobId })
  expect(await waitForJobEnd(environment.api, { jobId })).toMatchObject({ status: 'Failed' })
  await waitFor(
    'the notification',
    hasNotification(({ resource }) => resource === jobId),
  )
})

test('uses every grant for releases, and the roles deny nothing', () => {
  const { simulator } = environment
  expect(simulator.cloud.iamProxy.denials).toEqual([])
  expect(unusedGrantsOf(simulator, releaseGrants)).toEqual([])
  // An update deletes superseded versions only after more than two releases.
  const exceptions = ['functions:update lambda:DeleteFunction']
  expect(unusedActions(simulator, /^functions:/)).toEqual(exceptions)
})
