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
import { expect, test } from 'vitest'
import manifest from '../../../packages/hello/module.json' with { type: 'json' }
import { type LambdaFixtures, startLambdaFixtures } from '../../support/lambda-runtime.ts'
import { deploymentSpecOf, limits, textOf } from '../../support/local-runtime.ts'
import { sampled } from '../../support/long.ts'
import { pushFixture } from '../../support/module-image.ts'
import { manifestFor } from '../../support/module-manifest.ts'
import { cloudEvent } from '../../support/module-process.ts'
import { temporaryFolder } from '../../support/temporary-folder.ts'

const get = (path: string) => ({ method: 'GET', path })
const control = (method: string, path: string) => ({ method, path: `/_platform/v1${path}` })

/** Deploys a module of test/support/modules. */
const deployFixture = async ({ runtime, registry }: LambdaFixtures, name: string, args: string[] = [], spec = {}) =>
  runtime.deploy(deploymentSpecOf(await pushFixture(registry, name, args), spec))

const credentials = async () => ({ username: 'platform', password: 'secret' })

test('installs hello from a registry, runs its hooks, routes and job, and removes it completely', async () => {
  await using folder = await temporaryFolder()
  const registry = await startRegistry({ folder: folder.path, port: 0, password: 'secret', log: () => undefined })
  await using _ = { [Symbol.asyncDispose]: () => registry.close(0) }
  const source = registryClient(registry.host, { transport: plainTransport, credentials })
  const options = { bundle: true, platform: 'node', format: 'esm', write: false } as const
  const { outputFiles } = await build({ entryPoints: ['packages/hello/src/main.ts'], ...options })
  const files = [{ path: '/app/main.mjs', content: outputFiles[0]?.text ?? '' }]
  const config = { Entrypoint: ['/usr/local/bin/node', '/app/main.mjs'] }
  const { digest } = await pushImage(source, 'platform/hello', await buildImage({ files, config }), ['1.0.0'])

  await using fixtures = await startLambdaFixtures({ source })
  const { runtime } = fixtures
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
  await expect.poll(() => fixtures.output()).toContain('The hello module is alive')

  expect(await shutDown(runtime, deployment)).toMatchObject({ problems: [] })
  expect(await runtime.list()).toEqual([])
  expect((await fixtures.client.send(new ListFunctionsCommand({}))).Functions).toEqual([])
  expect(fixtures.target.manifests.size).toBe(0)
})

test('configures each sandbox, and starts it on request during installation and before its first request later', async () => {
  await using fixtures = await startLambdaFixtures()
  const { runtime, lambda } = fixtures
  const deployment = await deployFixture(fixtures, 'calm', [], { startsItself: false })
  const description = await runtime.request(deployment, control('GET', '/describe'), limits)
  expect(JSON.parse(textOf(description))).toMatchObject({ id: 'calm', state: 'Configured' })
  expect(fixtures.output()).not.toContain('start\n')
  await runtime.request(deployment, control('POST', '/start'), limits)
  await expect.poll(() => fixtures.output().match(/^start$/gm)).toHaveLength(1)
  await lambda.reap()
  const headers = { Accept: 'text/html', 'x-any': 'thing' }
  const response = await runtime.request(deployment, { ...get('/api/calm/headers'), headers }, limits)
  expect(JSON.parse(textOf(response))).toMatchObject({ accept: 'text/html', 'x-any': 'thing' })
  expect(textOf(response)).not.toContain('x-platform-token')
  await expect
    .poll(() => fixtures.output().match(/^(configure|start)$/gm))
    .toEqual(['configure', 'start', 'configure', 'start'])
})

test('handles concurrent requests in separate sandboxes', async () => {
  await using fixtures = await startLambdaFixtures()
  const deployment = await deployFixture(fixtures, 'calm')
  const send = () => fixtures.runtime.request(deployment, get('/api/calm/slow'), limits)
  expect((await Promise.all([send(), send()])).map(textOf)).toEqual(['slow done', 'slow done'])
  expect(fixtures.lambda.sandboxes('mod-calm')).toHaveLength(2)
})

test('delivers events to a new sandbox and returns what it publishes', async () => {
  await using fixtures = await startLambdaFixtures()
  const { runtime } = fixtures
  const deployment = await deployFixture(fixtures, 'publishes')
  await runLifecycle(runtime, [{ deployment, manifest: manifestFor('publishes') }])
  await fixtures.lambda.reap()
  const { published } = await deliverEvents(runtime, deployment, [cloudEvent('evt_1')])
  const names = ['configured', 'started', 'noticed']
  expect(published.map(({ type }) => type)).toEqual(names.map((name) => `module.publishes.${name}`))
})

test.each(
  sampled(
    [
      ['throws', 'configure', 'This module throws.'],
      ['throws', 'configureServices', 'This module throws.'],
      ['exits', 'configure', 'exit status 3'],
      ['spins', 'configure', 'Task timed out after 1.00 seconds'],
    ] as const,
    2,
  ),
)('reports that a module %s in %s, and removes it', async (how, hook, reason) => {
  const isEndless = how === 'spins'
  const options = isEndless ? { initLimitMs: 500, settings: { timeoutSeconds: 1 } } : {}
  await using fixtures = await startLambdaFixtures(options)
  const { runtime } = fixtures
  const id = `${how}-in-${hook === 'configureServices' ? 'configure-services' : hook}`
  const deployment = await deployFixture(fixtures, 'hooks', [how, hook], { moduleId: id })
  const [result] = await runLifecycle(runtime, [{ deployment, manifest: manifestFor(id) }])
  expect(result).toMatchObject({ outcome: 'Failed', error: { code: 'PLAT-MOD-5004' } })
  expect(result?.error?.message).toContain(reason)
  await shutDown(runtime, deployment, { graceMs: 1000 })
  expect(await runtime.list()).toEqual([])
})

test('does not configure a module whose code has another id', async () => {
  await using fixtures = await startLambdaFixtures()
  const deployment = await deployFixture(fixtures, 'other-id')
  const [result] = await runLifecycle(fixtures.runtime, [{ deployment, manifest: manifestFor('other-id') }])
  expect(result).toMatchObject({ outcome: 'Failed', error: { code: 'PLAT-MOD-5001' } })
  expect(fixtures.output()).not.toMatch(/^configure$/m)
})

test('replaces a sandbox that crashes', async () => {
  await using fixtures = await startLambdaFixtures()
  const { runtime } = fixtures
  const spec = { moduleId: 'throws-later-in-start' }
  const deployment = await deployFixture(fixtures, 'hooks', ['throwsLater', 'start'], spec)
  const start = runtime.request(deployment, control('POST', '/start'), limits)
  await start.catch((error) => expect(error).toMatchObject({ problem: 'crashed' }))
  expect((await runtime.request(deployment, control('GET', '/describe'), limits)).status).toBe(200)
})

test('disposes of and removes a module whose stop hook never ends', async () => {
  await using fixtures = await startLambdaFixtures()
  const { runtime } = fixtures
  const id = 'hangs-in-stop'
  const deployment = await deployFixture(fixtures, 'hooks', ['hangs', 'stop'], { moduleId: id })
  await runLifecycle(runtime, [{ deployment, manifest: manifestFor(id) }])
  const { problems } = await shutDown(runtime, deployment, { graceMs: 300 })
  expect(problems).toEqual([expect.stringMatching(/^stop: /)])
  await expect.poll(() => fixtures.output()).toMatch(/^dispose$/m)
  expect(await runtime.list()).toEqual([])
})

test('accepts only requests with the token of the deployment', async () => {
  await using fixtures = await startLambdaFixtures()
  const deployment = await deployFixture(fixtures, 'calm')
  const stranger = fixtures.another({ tokenOf: async () => 'another' })
  const forged = { ...get('/api/calm'), headers: { [tokenHeader]: `token of ${deployment.id}` } }
  expect((await stranger.request(deployment, forged, limits)).status).toBe(403)
  expect((await fixtures.runtime.request(deployment, forged, limits)).status).toBe(200)
  const command = new GetFunctionConfigurationCommand({ FunctionName: 'mod-calm', Qualifier: '1' })
  expect(await fixtures.client.send(command)).toMatchObject({
    Description: `deployment ${deployment.id}`,
    MemorySize: 256,
    Timeout: 20,
    Role: 'arn:aws:iam::000000000000:role/modules',
  })
})
