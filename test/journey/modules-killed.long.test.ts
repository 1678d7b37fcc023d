import { expect, test } from 'vitest'
import { expectStatus } from '../conformance/support/answer.ts'
import type { Client } from '../conformance/support/client.ts'
import { waitForJobEnd } from '../conformance/support/modules.ts'
import { programOf } from '../support/author.ts'
import { failpointsIn } from '../support/failpoints.ts'
import { processesOf, waitForModuleCleanup } from '../support/module-cleanup.ts'
import { startModuleRegistry, writtenManifest } from '../support/module-registry.ts'
import { PlatformProcess } from '../support/platform.ts'
import { waitFor } from '../support/wait-for.ts'

type Request = () => ReturnType<Client['post']>

async function start() {
  await using resources = new AsyncDisposableStack()
  const registry = resources.use(await startModuleRegistry())
  const settings = {
    ...registry.settings,
    PLAT_MODULE_SUPERVISION_INTERVAL_SECONDS: '1',
    PLAT_MODULE_ISOLATION: 'process',
    PLAT_OPERATION_LEASE_SECONDS: '3',
  }
  const platform = resources.use(await PlatformProcess.start(settings))
  const api = await platform.setUp()
  const admin = await api.admin
  const { organisationId } = expectStatus(await admin.get('/api/v1/auth/me'), 200)
  const hit: string[] = []

  const killAt = async (points: readonly string[], work: () => Promise<unknown>): Promise<void> => {
    for (const [index, point] of points.entries()) {
      await platform.kill()
      await platform.restart({ PLAT_FAILPOINT: `${point}=kill` })
      if (index === 0) await work()
      await platform.ended
      expect(platform.text).toContain(`failpoint ${point}`)
      hit.push(point)
    }
    await platform.restart()
  }

  const runWithKills = async (points: readonly string[], request: Request, status = 'Completed'): Promise<void> => {
    let acceptedOperation: any
    await killAt(points, async () => (acceptedOperation = expectStatus(await request(), 202)))
    const job = await waitForJobEnd(api, acceptedOperation)
    expect(job.status, JSON.stringify(job)).toBe(status)
    expect(job.steps.filter((step: any) => ['Pending', 'Running'].includes(step.status))).toEqual([])
  }

  const install = async (id: string, version: string, behaviour = ''): Promise<Request> => {
    const { program, args } = await programOf(`versioned ${id} ${version} ${behaviour}`.trim())
    const files = [{ path: '/app/main.mjs', content: program }]
    const config = { Entrypoint: ['node', '/app/main.mjs', ...args], WorkingDir: '/app' }
    const manifest = writtenManifest(id, version, { events: ['platform.cluster.registered'] })
    const { reference } = await registry.push(id, { version, files, config, manifest })
    return () => admin.post('/api/modules/install', { imageRef: reference })
  }
  const uninstall =
    (id: string): Request =>
    () =>
      admin.delete(`/api/modules/${id}`)

  const expectVersion = async (id: string, version?: string): Promise<void> => {
    const readRunningVersion = async () => (await admin.get(`/api/${id}`)).body?.version
    if (version !== undefined)
      await waitFor(`${version} of ${id}`, async () => (await readRunningVersion()) === version)
    const response = await admin.get(`/api/v1/modules/${id}`)
    if (version === undefined) {
      expectStatus(response, 404, 'module_not_found')
      expectStatus(await api.anonymous.get(`/api/${id}`), 404, 'route_not_found')
    } else {
      const { state, jobId } = expectStatus(response, 200)
      expect([state, response.body.version, jobId]).toEqual(['Running', version, undefined])
    }
    await waitFor(`the deployments of ${id}`, async () => {
      const processes = await processesOf(organisationId, id)
      return new Set(processes.map(({ deploymentId }) => deploymentId)).size === (version === undefined ? 0 : 1)
    })
  }
  const ownedResources = resources.move()
  const dispose = () => ownedResources.disposeAsync()
  return { platform, api, hit, killAt, runWithKills, install, uninstall, expectVersion, [Symbol.asyncDispose]: dispose }
}

test('modules are completely installed or absent after a kill at every failpoint', { timeout: 900_000 }, async () => {
  await using world = await start()
  const { platform, api, hit, killAt, runWithKills, install, uninstall, expectVersion } = world
  for (const [index, points] of [
    ['operation.begun', 'module.verified'],
    ['module.deployed'],
    ['module.loaded', 'module.loaded'],
    ['module.published'],
  ].entries()) {
    const id = `new-${index}`
    await runWithKills(points, await install(id, '1.0.0'))
    await expectVersion(id, '1.0.0')
    expect(await waitForJobEnd(api, expectStatus(await uninstall(id)(), 202))).toMatchObject({ status: 'Completed' })
  }
  await runWithKills(['module.compensated'], await install('refused', '1.0.0', 'throws'), 'Failed')
  await expectVersion('refused')

  await runWithKills(['operation.begun', 'module.verified', 'module.loaded'], await install('upgraded', '1.0.0'))
  await expectVersion('upgraded', '1.0.0')
  for (const [index, point] of ['module.deployed', 'module.published', 'module.loaded'].entries()) {
    await runWithKills([point], await install('upgraded', `1.${index + 1}.0`))
    await expectVersion('upgraded', `1.${index + 1}.0`)
  }
  await runWithKills(['module.compensated'], await install('upgraded', '2.0.0', 'throws'), 'Failed')
  await expectVersion('upgraded', '1.3.0')

  await killAt(['module.probed'], async () => undefined)
  await expectVersion('upgraded', '1.3.0')
  expectStatus(await (await api.admin).put('/api/v1/organisation/modules/upgraded', { enabled: true }), 200)
  let cluster: any
  await killAt(['module.delivered'], async () => (cluster = await api.newCluster()))
  const laterCluster = await api.newCluster()
  for (const { id } of [cluster, laterCluster]) await platform.writes(new RegExp(`heard of ${id}`))
  await expectVersion('upgraded', '1.3.0')

  await runWithKills(['module.stopped', 'module.forgotten'], uninstall('upgraded'))
  await expectVersion('upgraded')
  await waitForModuleCleanup(platform)
  const failpoints = failpointsIn('packages/worker/src/modules', 'packages/worker/src/runtimes')
  expect(new Set(hit)).toEqual(new Set([...failpoints, 'operation.begun']))
})
