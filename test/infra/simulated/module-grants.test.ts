import { DeleteItemCommand, DynamoDBClient } from '@aws-sdk/client-dynamodb'
import { DeleteFunctionCommand, ListFunctionsCommand } from '@aws-sdk/client-lambda'
import { moduleDelivery } from '@platform/core/db/keys'
import { clientSettings } from '@platform/local/emulators/http/environment'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { expectStatus } from '../../conformance/support/answer.ts'
import type { Client } from '../../conformance/support/client.ts'
import { over } from '../../conformance/support/modules.ts'
import type { Relay } from '../../conformance/support/relay.ts'
import { waitFor } from '../../support/wait-for.ts'
import { isLong } from '../../support/long.ts'
import { bundleFixture } from '../../support/module-image.ts'
import { startModuleRegistry } from '../../support/module-registry.ts'
import { giveCredentials, startPrivateRegistry } from '../../support/private-registry.ts'
import { type SimulatedPlatform, startSimulatedPlatform } from '../../support/simulator.ts'
import { byFunction, moduleGrants } from './grants/module-needs.ts'
import { type Act, playAlone, played, type Scene } from './grants/withholding.ts'

/** Least privilege where modules come in: without any one of these grants something is missed that the platform promises. */

const resources = new AsyncDisposableStack()
let registry: Awaited<ReturnType<typeof startModuleRegistry>>
let stage: SimulatedPlatform
let scene: Scene
let admin: Client
let relay: Relay

const calm = '/api/v1/modules/calm'
const program = async (name: string) => [{ path: '/app/main.mjs', content: await bundleFixture(name) }]
const node = { Entrypoint: ['node', '/app/main.mjs'], WorkingDir: '/app' }

if (isLong) {
  beforeAll(async () => {
    registry = resources.use(await startModuleRegistry())
    const guarded = resources.use(await startPrivateRegistry(registry.host))
    stage = resources.use(
      await startSimulatedPlatform({
        PLAT_REGISTRY_ALLOW: guarded.host,
        PLAT_MODULE_SOURCES: ['calm', 'broken'].map((id) => `${guarded.host}/modules/${id}`).join(),
        PLAT_MODULE_KEYS: registry.settings.PLAT_MODULE_KEYS,
        PLAT_OUTBOX_RETRY_SECONDS: '1',
        PLAT_OPERATION_LEASE_SECONDS: '3',
      }),
    )
    const { simulator, api: platform, tick } = stage
    scene = { simulator, platform, tick }
    admin = await platform.admin
    await giveCredentials(simulator, guarded)
    await registry.push('calm', { files: await program('calm'), config: node })
    await registry.push('broken', { files: [{ path: '/app/main.mjs', content: 'process.exit(1)' }], config: node })
    await tick('schedule/catalog')
    relay = await platform.newRelay()
  }, 180_000)
}
afterAll(() => resources.disposeAsync())

const done = async (asked: ReturnType<Client['post']>) => over(stage.api, expectStatus(await asked, 202))

async function functionsOfModules(): Promise<string[]> {
  const { Functions = [] } = await stage.simulator.cloud.lambda.send(new ListFunctionsCommand({}))
  const names = Functions.map(({ FunctionName = '' }) => FunctionName)
  return names.filter((name) => name.startsWith('platform-dev-mod-'))
}

const scanned: Act = {
  title: 'a scan that was asked for by the clock finds the modules of a private registry',
  play: async () => {
    const since = Date.now()
    await stage.tick('schedule/catalog')
    const { scannedAt, problems = [] } = expectStatus(await admin.get('/api/v1/modules/catalog'), 200)
    expect([Date.parse(scannedAt) >= since, problems]).toEqual([true, []])
  },
}

const comesAndGoes: Act = {
  title: 'a module of a private registry is installed, answers, and is removed with all that it had',
  play: async () => {
    expect(await done(admin.post(`${calm}/install`, {}))).toMatchObject({ status: 'Completed' })
    expectStatus(await admin.get('/api/calm'), 200)
    expect(await done(admin.delete(calm))).toMatchObject({ status: 'Completed' })
    expect(await functionsOfModules()).toEqual([])
  },
}

const neverStarts: Act = {
  title: 'of a module that does not start nothing is left',
  play: async () => {
    expect(await done(admin.post('/api/v1/modules/broken/install', {}))).toMatchObject({ status: 'Failed' })
    expect(await functionsOfModules()).toEqual([])
  },
}

const answers: Act = {
  title: 'a module answers',
  play: async () => void expectStatus(await admin.get('/api/calm'), 200),
}

const hears: Act = {
  title: 'a module hears of what has happened',
  play: async ({ platform }) => {
    const { jobId, leaseId } = await platform.running(relay)
    expectStatus(await relay.complete(jobId, leaseId, 0), 200)
    await waitFor('it has heard', async () => stage.lines.some((line) => line.includes(`event ${jobId}`)))
  },
}

const madeAgain: Act = {
  title: 'a module whose function was removed is made again',
  play: async () => {
    const FunctionName = 'platform-dev-mod-calm'
    await stage.simulator.cloud.lambda.send(new DeleteFunctionCommand({ FunctionName })).catch(() => undefined)
    await stage.tick('schedule/heartbeat')
    expectStatus(await admin.get('/api/calm'), 200)
  },
}

/** Nobody has the module's events in hand any more: a worker that was broken off would hold them up for a minute. */
async function letGo(): Promise<void> {
  const { cloud, functions } = stage.simulator
  const { pk, sk } = moduleDelivery('calm')
  const store = new DynamoDBClient(clientSettings(cloud.dynamoDbUrl, cloud.accessKeyId))
  const TableName = functions[0]?.environment['PLAT_TABLE']
  await store.send(new DeleteItemCommand({ TableName, Key: { pk: { S: pk }, sk: { S: sk } } }))
  store.destroy()
}

/** What was broken off goes on: in the end the module is there, or is not. */
const healed = (isWanted: boolean) => () =>
  waitFor('what was broken off has gone on', async () => {
    for (const clock of ['sweep', 'heartbeat']) await stage.tick(`schedule/${clock}`)
    const { status, body } = await admin.get(calm)
    if (status === 404 && isWanted) await admin.post(`${calm}/install`, {})
    else if (status === 404) return (await functionsOfModules()).length === 0
    else if (body.state === 'Failed' || !isWanted) await admin.delete(calm)
    return isWanted && body.state === 'Running' && (await admin.get('/api/calm')).status === 200
  })

const store = ['table:read', 'table:write']
const deploying = ['modules:deploy', 'modules:deploy (role)', 'modules:deploy (images)', 'modules:deploy (registry)']
const running = ['secret:signing-keys', 'secret:registries', 'modules:remove', 'modules:invoke', ...deploying]

/** An act, whether the module is there meanwhile, function → grants that it needs. */
type Row = [act: Act, isThere: boolean, grants: Record<string, readonly string[]>]

const table: Row[] = [
  [scanned, false, { 'schedule/catalog': [...store, 'secret:registries'] }],
  [
    comesAndGoes,
    false,
    {
      'queue/updates': [...store, ...running, 'modules:remove (images)', 'messages'],
      modules: [...store, 'queue:updates'],
    },
  ],
  [neverStarts, false, { 'queue/updates': ['modules:remove (list)'] }],
  [answers, true, { 'gateway/modules': ['table:read', 'secret:signing-keys', 'modules:invoke'] }],
  [
    hears,
    true,
    {
      // First: what the others leave in the queue of modules would have it hear all the same.
      'queue/events': ['queue:modules'],
      'queue/modules': [...store, 'secret:signing-keys', 'modules:invoke', 'messages'],
    },
  ],
  [madeAgain, true, { 'schedule/heartbeat': ['table:read', ...running, 'modules:remove (list)'] }],
]

for (const [act, isThere, grants] of table) {
  const heal = healed(isThere)
  const needs = Object.entries(grants).flatMap(([name, each]) => each.map((grant) => ({ name, grant, act })))

  test.runIf(isLong)(
    `without any one of its grants this is missed: ${act.title}`,
    async () => {
      await heal()
      const { denials: before } = stage.simulator.cloud.gate
      const count = before.length
      expect(await played(scene, act)).toBeUndefined()
      expect(before.slice(count)).toEqual([])
      for (const need of needs) {
        const { failure, denials } = await playAlone(scene, need, async () => {
          await heal()
          if (act === hears) await letGo()
        })
        expect([need.name, need.grant, failure]).toEqual([need.name, need.grant, expect.any(String)])
        expect(denials, `${need.name} ${need.grant}`).not.toEqual([])
      }
      await waitFor(act.title, async () => (await played(scene, act)) === undefined)
    },
    400_000,
  )
}

test('these are the grants that stand for modules', () => {
  expect(byFunction(...table.map(([, , grants]) => grants))).toEqual(byFunction(moduleGrants))
})
