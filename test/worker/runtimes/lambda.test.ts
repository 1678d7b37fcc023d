import { GetFunctionConfigurationCommand, ListFunctionsCommand } from '@aws-sdk/client-lambda'
import { startRegistry } from '@platform/local/registry/server'
import { deliverEvents } from '@platform/worker/modules/lifecycle/events'
import { runJob } from '@platform/worker/modules/lifecycle/jobs'
import { runLifecycle } from '@platform/worker/modules/lifecycle/run'
import { probe } from '@platform/worker/modules/lifecycle/probe'
import { shutDown } from '@platform/worker/modules/lifecycle/shut-down'
import { tokenHeader } from '@platform/modules/protocol'
import { buildImage } from '@platform/oci/build'
import { registryClient } from '@platform/oci/client'
import { plainTransport } from '@platform/oci/plain-transport'
import { pushImage } from '@platform/oci/push'
import { build } from 'esbuild'
import { describe, expect, test } from 'vitest'
import manifest from '../../../packages/hello/module.json' with { type: 'json' }
import { startLambdaFixtures } from '../../support/lambda-runtime.ts'
import { deploymentSpecOf, limits, textOf } from '../../support/local-runtime.ts'
import { isLong } from '../../support/long.ts'
import { pushFixture } from '../../support/module-image.ts'
import { manifestFor } from '../../support/module-manifest.ts'
import { temporaryFolder } from '../../support/temporary-folder.ts'

const get = (path: string) => ({ method: 'GET', path })
const control = (method: string, path: string) => ({ method, path: `/_platform/v1${path}` })

const credentials = async () => ({ username: 'platform', password: 'secret' })

test('hello runs as a function: from a registry through its hooks to its routes, and nothing is left of it', async () => {
  await using folder = await temporaryFolder()
  const registry = await startRegistry({ folder: folder.path, port: 0, password: 'secret', log: () => undefined })
  await using _ = { [Symbol.asyncDispose]: () => registry.close(0) }
  const source = registryClient(registry.host, { transport: plainTransport, credentials })
  const options = { bundle: true, platform: 'node', format: 'esm', write: false } as const
  const { outputFiles } = await build({ entryPoints: ['packages/hello/src/main.ts'], ...options })
  const files = [{ path: '/app/main.mjs', content: outputFiles[0]?.text ?? '' }]
  const config = { Entrypoint: ['/usr/local/bin/node', '/app/main.mjs'] }
  const { digest } = await pushImage(source, 'platform/hello', await buildImage({ files, config }), ['1.0.0'])

  await using world = await startLambdaFixtures({ source })
  const { runtime } = world
  const deployment = await runtime.deploy(deploymentSpecOf({ repository: `${registry.host}/platform/hello`, digest }))
  expect(deployment).toMatchObject({ runtime: 'lambda', moduleId: 'hello', digest, handle: 'mod-hello:1' })
  const hello = { deployment, manifest: manifestFor('hello', manifest.spec as object) }
  expect(await runLifecycle(runtime, [hello])).toMatchObject([{ outcome: 'Running', warnings: [] }])
  expect(JSON.parse(textOf(await runtime.request(deployment, get('/api/hello'), limits)))).toMatchObject({
    moduleId: 'hello',
    moduleVersion: '1.0.0',
  })
  const page = await runtime.request(deployment, get('/modules/hello'), limits)
  expect([page.status, page.headers['content-type']]).toEqual([200, 'text/html; charset=UTF-8'])
  expect(await probe(runtime, deployment, hello.manifest)).toMatchObject({ checks: [{ status: 'Healthy' }] })
  expect(await runJob(runtime, deployment, 'heartbeat', 5000)).toMatchObject({ outcome: 'Completed' })
  await expect.poll(() => world.output()).toContain('The hello module is alive')

  expect(await shutDown(runtime, deployment)).toMatchObject({ problems: [] })
  expect(await runtime.list()).toEqual([])
  expect((await world.client.send(new ListFunctionsCommand({}))).Functions).toEqual([])
  expect(world.target.manifests.size).toBe(0)
})

describe('a module that may have many sandboxes', () => {
  test('configures itself in each, and starts itself before the first request; while it is installed, when it is told', async () => {
    await using world = await startLambdaFixtures()
    const { runtime, lambda } = world
    const image = await pushFixture(world.registry, 'calm')
    const deployment = await runtime.deploy(deploymentSpecOf(image, { startsItself: false }))
    const described = await runtime.request(deployment, control('GET', '/describe'), limits)
    expect(JSON.parse(textOf(described))).toMatchObject({ id: 'calm', state: 'Configured' })
    expect(world.output()).not.toContain('start\n')
    await runtime.request(deployment, control('POST', '/start'), limits)
    await expect.poll(() => world.output().match(/^start$/gm)).toHaveLength(1)
    await lambda.reap()
    expect((await runtime.request(deployment, get('/api/calm'), limits)).status).toBe(200)
    await expect
      .poll(() => world.output().match(/^(configure|start)$/gm))
      .toEqual(['configure', 'start', 'configure', 'start'])
  })

  test('answers requests at once in sandboxes of their own', async () => {
    await using world = await startLambdaFixtures()
    const deployment = await world.runtime.deploy(deploymentSpecOf(await pushFixture(world.registry, 'calm')))
    const answers = await Promise.all(
      [1, 2, 3].map(() => world.runtime.request(deployment, get('/api/calm/slow'), limits)),
    )
    expect(answers.map(textOf)).toEqual(['slow done', 'slow done', 'slow done'])
    expect(world.lambda.sandboxes('mod-calm')).toHaveLength(3)
  })

  test('gets events and tells what it publishes, whichever sandbox it is', async () => {
    await using world = await startLambdaFixtures()
    const { runtime } = world
    const deployment = await runtime.deploy(deploymentSpecOf(await pushFixture(world.registry, 'publishes')))
    await runLifecycle(runtime, [{ deployment, manifest: manifestFor('publishes') }])
    await world.lambda.reap()
    const event = {
      specversion: '1.0' as const,
      datacontenttype: 'application/json' as const,
      id: 'evt_1',
      source: '/organisations/org_1',
      type: 'platform.cluster.deleted',
      time: '2026-01-01T00:00:00.000Z',
      subject: 'clus_1',
      data: {},
    }
    const delivered = await deliverEvents(runtime, deployment, [event])
    expect(delivered.published.map(({ type }) => type)).toEqual([
      'module.publishes.configured',
      'module.publishes.started',
      'module.publishes.noticed',
    ])
  })
})

describe('what a module does wrong', () => {
  const failing = { outcome: 'Failed', error: { code: 'PLAT-MOD-5004' } }

  test.each([
    ['throws', 'configure', 'This module throws.'] as const,
    ['exits', 'configure', 'exit status 3'] as const,
    ['throws', 'configureServices', 'This module throws.'] as const,
    // Two times as long as it may take to begin: the tests of the functions themselves have it as well.
    ...(isLong ? [['spins', 'configure', 'Task timed out after 1.00 seconds'] as const] : []),
  ])('%s in %s: it has Failed, and says why', async (how, hook, reason) => {
    const isEndless = how === 'spins'
    await using world = await startLambdaFixtures(
      isEndless ? { initLimitMs: 500, settings: { timeoutSeconds: 1 } } : {},
    )
    const { runtime } = world
    const id = `${how}-in-${hook === 'configureServices' ? 'configure-services' : hook}`
    const image = await pushFixture(world.registry, 'hooks', [how, hook])
    const deployment = await runtime.deploy(deploymentSpecOf(image, { moduleId: id }))
    const [loaded] = await runLifecycle(runtime, [{ deployment, manifest: manifestFor(id) }])
    expect(loaded).toMatchObject(failing)
    expect(loaded?.error?.message).toContain(reason)
    await shutDown(runtime, deployment, { graceMs: 1000 })
    expect(await runtime.list()).toEqual([])
  })

  test('it has another id in its code: nothing of it is configured', async () => {
    await using world = await startLambdaFixtures()
    const deployment = await world.runtime.deploy(deploymentSpecOf(await pushFixture(world.registry, 'other-id')))
    const [loaded] = await runLifecycle(world.runtime, [{ deployment, manifest: manifestFor('other-id') }])
    expect(loaded).toMatchObject({ outcome: 'Failed', error: { code: 'PLAT-MOD-5001' } })
    expect(world.output()).not.toMatch(/^configure$/m)
  })

  test('it knows nothing of the platform, and of Lambda: it has Failed, the others run', async () => {
    await using world = await startLambdaFixtures()
    const { runtime, registry } = world
    const [stranger, calm] = [await pushFixture(registry, 'ends-at-once'), await pushFixture(registry, 'calm')]
    const deployments = await Promise.all([stranger, calm].map((image) => runtime.deploy(deploymentSpecOf(image))))
    const loaded = await runLifecycle(
      runtime,
      deployments.map((deployment) => ({ deployment, manifest: manifestFor(deployment.moduleId) })),
    )
    expect(loaded).toMatchObject([failing, { outcome: 'Running' }])
    expect(loaded[0]?.error?.message).toContain('exit status 4')
  })

  test('it crashes on the way: the next request has a new sandbox', async () => {
    await using world = await startLambdaFixtures()
    const { runtime } = world
    const image = await pushFixture(world.registry, 'hooks', ['throwsLater', 'start'])
    const deployment = await runtime.deploy(deploymentSpecOf(image, { moduleId: 'throws-later-in-start' }))
    const start = runtime.request(deployment, control('POST', '/start'), limits)
    await start.catch((error) => expect(error).toMatchObject({ problem: 'crashed' }))
    expect((await runtime.request(deployment, control('GET', '/describe'), limits)).status).toBe(200)
  })

  test('its stop never ends: it is disposed of and removed all the same', async () => {
    await using world = await startLambdaFixtures()
    const { runtime } = world
    const id = 'hangs-in-stop'
    const image = await pushFixture(world.registry, 'hooks', ['hangs', 'stop'])
    const deployment = await runtime.deploy(deploymentSpecOf(image, { moduleId: id }))
    await runLifecycle(runtime, [{ deployment, manifest: manifestFor(id) }])
    const { problems } = await shutDown(runtime, deployment, { graceMs: 300 })
    expect(problems).toEqual([expect.stringMatching(/^stop: /)])
    await expect.poll(() => world.output()).toMatch(/^dispose$/m)
    expect(await runtime.list()).toEqual([])
  })
})

test('only who has the token is answered, and each deployment has one of its own', async () => {
  await using world = await startLambdaFixtures()
  const image = await pushFixture(world.registry, 'calm')
  const deployment = await world.runtime.deploy(deploymentSpecOf(image))
  const stranger = world.another({ tokenOf: async () => 'another' })
  const forged = { ...get('/api/calm'), headers: { 'X-Platform-Token': `token of ${deployment.id}` } }
  expect((await stranger.request(deployment, forged, limits)).status).toBe(403)
  expect((await world.runtime.request(deployment, { ...forged, headers: { [tokenHeader]: 'x' } }, limits)).status).toBe(
    200,
  )
  const configuration = await world.client.send(
    new GetFunctionConfigurationCommand({ FunctionName: 'mod-calm', Qualifier: '1' }),
  )
  expect(configuration).toMatchObject({
    Description: `deployment ${deployment.id}`,
    MemorySize: 256,
    Timeout: 20,
    Role: 'arn:aws:iam::000000000000:role/modules',
  })
})
