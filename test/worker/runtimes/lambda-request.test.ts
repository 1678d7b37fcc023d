import { ListFunctionsCommand } from '@aws-sdk/client-lambda'
import { startRegistry } from '@platform/local/registry/server'
import { runJob } from '@platform/worker/modules/lifecycle/events'
import { runLifecycle } from '@platform/worker/modules/lifecycle/run'
import { probe } from '@platform/worker/modules/lifecycle/probe'
import { shutDown } from '@platform/worker/modules/lifecycle/shut-down'
import { buildImage } from '@platform/oci/build'
import { registryClient } from '@platform/oci/client'
import { plainTransport } from '@platform/oci/plain-transport'
import { pushImage } from '@platform/oci/push'
import { build } from 'esbuild'
import { expect, test } from 'vitest'
import manifest from '../../../packages/hello/module.json' with { type: 'json' }
import {
  startLambdaFixtures,
  type InterceptCall,
  type LambdaOptionsInput,
  moduleSource,
} from '../../support/lambda-runtime.ts'
import { deploymentSpecOf, limits, textOf } from '../../support/local-runtime.ts'
import { pushProgram } from '../../support/module-image.ts'
import { manifestFor } from '../../support/module-manifest.ts'
import { temporaryFolder } from '../../support/temporary-folder.ts'
import type { Deployment } from '@platform/core/modules/deployment'
import type { ModuleRequest } from '@platform/worker/runtimes/port'

const get = (path: string): ModuleRequest => ({ method: 'GET', path })
const bundleOptions = { bundle: true, platform: 'node', format: 'esm', write: false } as const
const credentials = async () => ({ username: 'platform', password: 'secret' })

test('installs hello from a registry, runs its hooks, routes and job, and removes it completely', async () => {
  await using folder = await temporaryFolder()
  const registry = await startRegistry({ folder: folder.path, port: 0, password: 'secret', log: () => undefined })
  await using _ = { [Symbol.asyncDispose]: () => registry.close(0) }
  const source = registryClient(registry.host, { transport: plainTransport, credentials })
  const { outputFiles } = await build({ ...bundleOptions, entryPoints: ['packages/hello/src/main.ts'] })
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

async function deployProgram(source: string, options: LambdaOptionsInput = {}) {
  const fixtures = await startLambdaFixtures(options)
  const image = await pushProgram(fixtures.registry, 'modules/it', source)
  const deployment = await fixtures.runtime.deploy(deploymentSpecOf(image))
  const send = (request: ModuleRequest = get('/'), requestLimits = limits) =>
    fixtures.runtime.request(deployment, request, requestLimits)
  return { ...fixtures, deployment, send, [Symbol.asyncDispose]: () => fixtures[Symbol.asyncDispose]() }
}

const okSource = moduleSource('JSON.stringify({ statusCode: 200 })')
const neverSettles = 'new Promise(() => setInterval(() => {}, 1000))'

test('sends a request as an API Gateway event with the token of the deployment', async () => {
  await using fixtures = await deployProgram(
    moduleSource(`JSON.stringify({ statusCode: 200, body: JSON.stringify(event) })`),
  )
  const body = Buffer.from([0, 255, 128])
  const headers = { 'Content-Type': 'application/octet-stream', 'X-Platform-Token': 'forged' }
  const event = JSON.parse(
    textOf(await fixtures.send({ method: 'PUT', path: '/api/a%2Fb%20c?q=%C3%A4&q=2', headers, body })),
  )
  expect(event).toMatchObject({
    version: '2.0',
    rawPath: '/api/a%2Fb%20c',
    rawQueryString: 'q=%C3%A4&q=2',
    headers: {
      'content-type': 'application/octet-stream',
      'x-platform-token': `token of ${fixtures.deployment.id}`,
      host: 'module',
    },
    requestContext: { http: { method: 'PUT', path: '/api/a%2Fb%20c' } },
    body: 'AP+A',
    isBase64Encoded: true,
  })
  expect(Object.keys(event.headers)).toHaveLength(3)
  const bareEvent = JSON.parse(textOf(await fixtures.send()))
  expect(bareEvent).toMatchObject({ rawPath: '/', rawQueryString: '', isBase64Encoded: false })
  expect(bareEvent).not.toHaveProperty('body')
})

const failWith = (members: object) => Promise.reject(Object.assign(new Error('no'), members))

test.each<[string, string, InterceptCall]>([
  ['unavailable if Lambda throttles it', 'unavailable', () => failWith({ name: 'TooManyRequestsException' })],
  ['unavailable if the connection is refused', 'unavailable', () => failWith({ code: 'ECONNREFUSED' })],
  [
    'crashed, without a retry, if its response is lost',
    'crashed',
    (_, send) => send().then(() => failWith({ code: 'ECONNRESET' })),
  ],
])('reports a request as %s', async (_, problem, intercept) => {
  await using fixtures = await deployProgram(okSource)
  let calls = 0
  const runtime = fixtures.another({}, (call, send) => {
    calls++
    return intercept(call, send)
  })
  await expect(runtime.request(fixtures.deployment, get('/'), limits)).rejects.toMatchObject({ problem })
  if (problem === 'crashed') expect(calls).toBe(1)
})

test('times out after the time limit of the caller', async () => {
  await using fixtures = await deployProgram(moduleSource(neverSettles))
  await expect(fixtures.send(get('/'), { timeoutMs: 300, maxBytes: 1 })).rejects.toMatchObject({
    problem: 'timeout',
    message: expect.stringContaining('300 ms'),
  })
})

test('reports a missing function and an unreachable Lambda as unavailable', async () => {
  await using fixtures = await startLambdaFixtures()
  const release = { moduleId: 'gone', version: '1.0.0', digest: '' }
  const deployment: Deployment = { runtime: 'lambda', isolation: '', id: 'gone-1', handle: 'mod-gone:1', ...release }
  const send = () => fixtures.another().request(deployment, get('/'), limits)
  await expect(send()).rejects.toMatchObject({ problem: 'unavailable' })
  await fixtures.lambda.close()
  await expect(send()).rejects.toMatchObject({ problem: 'unavailable' })
})

test('returns status, bytes and valid headers of a response, without cookies', async () => {
  const invalidHeaders = { 'bad name': 'x', 'x-split': 'a\r\nb: c', 'x-wide': '→', 'x-number': 1 }
  const headers = { 'X-One': 'Ünicode', 'Set-Cookie': 'a=b', 'set-cookie': 'c=d', ...invalidHeaders }
  const response = { statusCode: 201, headers, cookies: ['e=f'], body: 'AP+A', isBase64Encoded: true }
  await using fixtures = await deployProgram(moduleSource(JSON.stringify(JSON.stringify(response))))
  const body = Buffer.from([0, 255, 128])
  expect(await fixtures.send()).toEqual({ status: 201, headers: { 'x-one': 'Ünicode' }, body })
})

test('distinguishes invalid and oversized responses from valid ones', async () => {
  await using fixtures = await deployProgram(moduleSource('decodeURIComponent(event.rawQueryString)'))
  const send = (text: string) =>
    fixtures.send(get(`/?${encodeURIComponent(text)}`), { timeoutMs: 20_000, maxBytes: 1000 })
  const invalidResponses = ['{}', 'null', '"text"', '[]', 'garbage', '', '7', '{"statusCode":200,"body":{}}']
  const statuses = ['"200"', 99, 199, 600, 200.5, null].map((status) => `{"statusCode":${status}}`)
  for (const text of [...invalidResponses, ...statuses]) {
    await expect(send(text), text).rejects.toMatchObject({ problem: 'crashed' })
  }
  await expect(send(`{"statusCode":200,"body":"${'x'.repeat(1001)}"}`)).rejects.toMatchObject({ problem: 'too_large' })
  expect(await send('{"statusCode":204}')).toEqual({ status: 204, headers: {}, body: Buffer.alloc(0) })
  expect((await send(`{"statusCode":200,"headers":7,"body":"${'x'.repeat(1000)}"}`)).body).toHaveLength(1000)
})

test('rejects a request and a response that exceed the payload limit of Lambda', async () => {
  const largeSource = `JSON.stringify({ statusCode: 200, body: 'x'.repeat(6291456) })`
  await using fixtures = await deployProgram(moduleSource(largeSource))
  const body = Buffer.alloc(5 * 1024 * 1024)
  await expect(fixtures.send({ method: 'POST', path: '/', body })).rejects.toMatchObject({ problem: 'too_large' })
  const sending = fixtures.send(get('/'), { timeoutMs: 20_000, maxBytes: 2 ** 30 })
  await expect(sending).rejects.toMatchObject({ problem: 'too_large' })
})

const initError = (error: string) =>
  `await fetch('http://' + process.env.AWS_LAMBDA_RUNTIME_API + '/2018-06-01/runtime/init/error', { method: 'POST', body: ${JSON.stringify(error)} }); process.exit(1)`

test.each([
  ['exits at start', 'crashed', 'process.exit(3)', /exit status 3/],
  ['reports an init error', 'init_failed', initError('{"errorType":"PLAT-MOD-5004","errorMessage":"No."}'), /^No\.$/],
  ['reports an invalid error', 'crashed', initError('garbage'), /without a message/],
  ['never responds', 'timeout', moduleSource(neverSettles), /Task timed out/],
] as const)('a function that %s causes the error %s', async (name, problem, source, message) => {
  const isEndless = name.startsWith('never')
  await using fixtures = await deployProgram(
    source,
    isEndless ? { initLimitMs: 500, settings: { timeoutSeconds: 1 } } : {},
  )
  await expect(fixtures.send()).rejects.toMatchObject({ problem, message: expect.stringMatching(message) })
})

test('reports an image that cannot run on Lambda as failed to start', async () => {
  await using fixtures = await startLambdaFixtures()
  const image = await pushProgram(fixtures.registry, 'modules/it', '', { config: { Cmd: ['/bin/server'] } })
  const deployment = await fixtures.runtime.deploy(deploymentSpecOf(image))
  await expect(fixtures.runtime.request(deployment, get('/'), limits)).rejects.toMatchObject({ problem: 'init_failed' })
})

test('bundles no deployment code into the request client', async () => {
  const entryPoints = ['packages/worker/src/runtimes/lambda/request.ts']
  const { metafile } = await build({ ...bundleOptions, entryPoints, minify: true, metafile: true })
  const [output] = Object.values(metafile.outputs)
  const includedInputs = Object.entries(output?.inputs ?? {}).filter(([, { bytesInOutput }]) => bytesInOutput > 0)
  const files = includedInputs.map(([file]) => file).filter((file) => file.startsWith('packages/'))
  const lambda = ['errors', 'event', 'names', 'request'].map((name) => `packages/worker/src/runtimes/lambda/${name}.ts`)
  expect(files.toSorted()).toEqual(['packages/sdk/src/protocol.ts', ...lambda, 'packages/worker/src/runtimes/port.ts'])
})
