import { expect, test } from 'vitest'
import { expectStatus } from '../conformance/support/answer.ts'
import type { Client } from '../conformance/support/client.ts'
import { over } from '../conformance/support/modules.ts'
import type { Platform } from '../conformance/support/platform.ts'
import { waitFor } from '../support/wait-for.ts'
import { programOf } from '../support/author.ts'
import { failpointsIn } from '../support/failpoints.ts'
import { type ModuleRegistry, startModuleRegistry } from '../support/module-registry.ts'
import { PlatformProcess } from '../support/platform.ts'
import { waitForNoLeftovers, processesOf } from '../support/leftovers.ts'

/** A platform that dies again and again, and the modules that it is to look after. */
interface World extends AsyncDisposable {
  platform: PlatformProcess
  api: Platform
  admin: Client
  organisationId: string
  registry: ModuleRegistry
  /** The places where it has died. */
  struck: string[]
}

async function startWorld(): Promise<World> {
  await using starting = new AsyncDisposableStack()
  const registry = starting.use(await startModuleRegistry())
  const platform = starting.use(
    await PlatformProcess.start({
      ...registry.settings,
      PLAT_MODULE_SUPERVISION_INTERVAL_SECONDS: '1',
      PLAT_MODULE_ISOLATION: 'process',
      PLAT_OPERATION_LEASE_SECONDS: '3',
    }),
  )
  const api = await platform.setUp()
  const admin = await api.admin
  const { organisationId } = expectStatus(await admin.get('/api/v1/auth/me'), 200)
  const started = starting.move()
  const dispose = () => started.disposeAsync()
  return { platform, api, admin, organisationId, registry, struck: [], [Symbol.asyncDispose]: dispose }
}

type Ask = () => ReturnType<Client['post']>

/** A module, and the version that runs in the end; none: it is not there, and nothing of it is. */
async function expectExactly({ api, admin, organisationId }: World, id: string, version?: string): Promise<void> {
  const runs = async () => (await admin.get(`/api/${id}`)).body?.version
  // Modules start again with the platform, and some moments later than it.
  if (version !== undefined) await waitFor(`${version} of ${id} answers`, async () => (await runs()) === version)
  const found = await admin.get(`/api/v1/modules/${id}`)
  if (version === undefined) {
    expectStatus(found, 404, 'module_not_found')
    expectStatus(await api.anonymous.get(`/api/${id}`), 404, 'route_not_found')
  } else {
    const { state, jobId } = expectStatus(found, 200)
    expect([state, found.body.version, jobId]).toEqual(['Running', version, undefined])
  }
  await waitFor(`what runs of ${id} is what should`, async () => {
    const processes = await processesOf(organisationId, id)
    return new Set(processes.map(({ deploymentId }) => deploymentId)).size === (version === undefined ? 0 : 1)
  })
}

/** Has the platform die at some places, one after another, while it does something; starts it again. */
async function killedAt(world: World, places: readonly string[], act: () => Promise<unknown>): Promise<void> {
  const { platform, struck } = world
  for (const [index, place] of places.entries()) {
    await platform.kill()
    await platform.restart({ PLAT_FAILPOINT: `${place}=kill` })
    if (index === 0) await act()
    await platform.ended
    expect(platform.text).toContain(`failpoint ${place}`)
    struck.push(place)
  }
  await platform.restart()
}

/** An operation that ends as it should although the platform dies in it. */
async function surviving(world: World, places: readonly string[], ask: Ask, status = 'Completed'): Promise<void> {
  let accepted: any
  await killedAt(world, places, async () => (accepted = expectStatus(await ask(), 202)))
  const job = await over(world.api, accepted)
  expect(job.status, JSON.stringify(job)).toBe(status)
  expect(job.steps.filter((step: any) => ['Pending', 'Running'].includes(step.status))).toEqual([])
}

/** Publishes a version of a module, which cannot be configured where it is so; answers how to ask for it. */
async function installing({ registry, admin }: World, id: string, version: string, how = ''): Promise<Ask> {
  const { program, args } = await programOf(`told ${id} ${version} ${how}`.trim())
  const files = [{ path: '/app/main.mjs', content: program }]
  const config = { Entrypoint: ['node', '/app/main.mjs', ...args], WorkingDir: '/app' }
  const { reference } = await registry.push(id, { version, files, config })
  return () => admin.post('/api/modules/install', { imageRef: reference })
}

const uninstalling =
  ({ admin }: World, id: string): Ask =>
  () =>
    admin.delete(`/api/modules/${id}`)

/** An installation that dies at each of these places. */
const waysToInstall = [
  ['operation.begun', 'module.verified'],
  ['module.deployed'],
  ['module.loaded', 'module.loaded'],
  ['module.published'],
]

// The tests of the manager break off at each place as well.
test('modules are there once and whole or not at all, wherever kill -9 strikes', { timeout: 900_000 }, async () => {
  await using world = await startWorld()
  const { platform, api } = world
  for (const [index, places] of waysToInstall.entries()) {
    const id = `new-${index}`
    await surviving(world, places, await installing(world, id, '1.0.0'))
    await expectExactly(world, id, '1.0.0')
    expect(await over(api, expectStatus(await uninstalling(world, id)(), 202))).toMatchObject({ status: 'Completed' })
  }
  await surviving(world, ['module.compensated'], await installing(world, 'refused', '1.0.0', 'throws'), 'Failed')
  await expectExactly(world, 'refused')

  const before = ['operation.begun', 'module.verified', 'module.loaded']
  await surviving(world, before, await installing(world, 'upgraded', '1.0.0'))
  await expectExactly(world, 'upgraded', '1.0.0')
  const places = ['module.deployed', 'module.published', 'module.loaded']
  for (const [index, place] of places.entries()) {
    const version = `1.${index + 1}.0`
    await surviving(world, [place], await installing(world, 'upgraded', version))
    await expectExactly(world, 'upgraded', version)
  }
  const last = `1.${places.length}.0`
  await surviving(world, ['module.compensated'], await installing(world, 'upgraded', '2.0.0', 'throws'), 'Failed')
  await expectExactly(world, 'upgraded', last)

  await killedAt(world, ['module.probed'], async () => undefined)
  await expectExactly(world, 'upgraded', last)
  let cluster: any
  await killedAt(world, ['module.delivered'], async () => (cluster = await api.newCluster()))
  const later = await api.newCluster()
  for (const { id } of [cluster, later]) await platform.writes(new RegExp(`heard of ${id}`))
  await expectExactly(world, 'upgraded', last)

  await surviving(world, ['module.stopped', 'module.forgotten'], uninstalling(world, 'upgraded'))
  await expectExactly(world, 'upgraded')
  await waitForNoLeftovers(platform)
  expect(new Set(world.struck)).toEqual(
    new Set([...failpointsIn('packages/worker/src/modules', 'packages/worker/src/runtimes'), 'operation.begun']),
  )
  console.log(`${world.struck.length} kills: each module was there once, or not at all.`)
})
