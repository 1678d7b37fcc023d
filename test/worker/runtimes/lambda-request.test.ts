import { type Deployment } from '@platform/core/modules/record'
import { type ModuleRequest } from '@platform/worker/runtimes/port'
import { build } from 'esbuild'
import { expect, test } from 'vitest'
import {
  type InterceptCall,
  type LambdaOptionsInput,
  moduleSource,
  startLambdaFixtures,
} from '../../support/lambda-runtime.ts'
import { deploymentSpecOf, limits, textOf } from '../../support/local-runtime.ts'
import { sampled } from '../../support/long.ts'
import { pushProgram } from '../../support/module-image.ts'

/** Deploys a program as a function. */
async function deployProgram(source: string, options: LambdaOptionsInput = {}) {
  const fixtures = await startLambdaFixtures(options)
  const image = await pushProgram(fixtures.registry, 'modules/it', source)
  const deployment = await fixtures.runtime.deploy(deploymentSpecOf(image))
  const send = (request: ModuleRequest = get('/'), requestLimits = limits) =>
    fixtures.runtime.request(deployment, request, requestLimits)
  return { ...fixtures, deployment, send, [Symbol.asyncDispose]: () => fixtures[Symbol.asyncDispose]() }
}

const get = (path: string): ModuleRequest => ({ method: 'GET', path })
const ok = moduleSource('JSON.stringify({ statusCode: 200 })')
const never = 'new Promise(() => setInterval(() => {}, 1000))'

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
  const bare = JSON.parse(textOf(await fixtures.send()))
  expect(bare).toMatchObject({ rawPath: '/', rawQueryString: '', isBase64Encoded: false })
  expect(bare).not.toHaveProperty('body')
})

test.each<[string, string, InterceptCall]>([
  [
    'unavailable if Lambda throttles it',
    'unavailable',
    async () => Promise.reject(Object.assign(new Error('no'), { name: 'TooManyRequestsException' })),
  ],
  [
    'unavailable if the connection is refused',
    'unavailable',
    async () => Promise.reject(Object.assign(new Error('no'), { code: 'ECONNREFUSED' })),
  ],
  [
    'crashed, without a retry, if its response is lost',
    'crashed',
    async (_, send) => {
      await send()
      throw Object.assign(new Error('socket hang up'), { code: 'ECONNRESET' })
    },
  ],
])('reports a request as %s', async (_, problem, intercept) => {
  await using fixtures = await deployProgram(ok)
  let calls = 0
  const runtime = fixtures.another({}, (call, send) => {
    calls++
    return intercept(call, send)
  })
  await expect(runtime.request(fixtures.deployment, get('/'), limits)).rejects.toMatchObject({ problem })
  if (problem === 'crashed') expect(calls).toBe(1)
})

test('does not retry a request beyond the concurrency limit', async () => {
  const slow = `new Promise((resolve) => setTimeout(resolve, 300, JSON.stringify({ statusCode: 200 })))`
  await using fixtures = await deployProgram(moduleSource(slow), { concurrency: 1 })
  const results = await Promise.allSettled([fixtures.send(), fixtures.send()])
  expect(results.map(({ status }) => status).toSorted()).toEqual(['fulfilled', 'rejected'])
  expect(results).toContainEqual({ status: 'rejected', reason: expect.objectContaining({ problem: 'unavailable' }) })
})

test('rejects a request that exceeds the payload limit of Lambda', async () => {
  await using fixtures = await deployProgram(ok)
  const body = Buffer.alloc(5 * 1024 * 1024)
  await expect(fixtures.send({ method: 'POST', path: '/', body })).rejects.toMatchObject({ problem: 'too_large' })
})

test('times out after the time limit of the caller', async () => {
  await using fixtures = await deployProgram(moduleSource(never))
  await expect(fixtures.send(get('/'), { timeoutMs: 300, maxBytes: 1 })).rejects.toMatchObject({
    problem: 'timeout',
    message: expect.stringContaining('300 ms'),
  })
})

test('reports a missing function and an unreachable Lambda as unavailable', async () => {
  await using fixtures = await startLambdaFixtures()
  const deployment: Deployment = {
    runtime: 'lambda',
    isolation: '',
    id: 'gone-1',
    moduleId: 'gone',
    version: '1.0.0',
    digest: '',
    handle: 'mod-gone:1',
  }
  const send = () => fixtures.another().request(deployment, get('/'), limits)
  await expect(send()).rejects.toMatchObject({ problem: 'unavailable' })
  await fixtures.lambda.close()
  await expect(send()).rejects.toMatchObject({ problem: 'unavailable' })
})

test('returns status, bytes and valid headers of a response, without cookies', async () => {
  const response = {
    statusCode: 201,
    headers: {
      'X-One': 'Ünicode',
      'Set-Cookie': 'a=b',
      'set-cookie': 'c=d',
      'bad name': 'x',
      'x-split': 'a\r\nb: c',
      'x-wide': '→',
      'x-number': 1,
    },
    cookies: ['e=f'],
    body: 'AP+A',
    isBase64Encoded: true,
  }
  await using fixtures = await deployProgram(moduleSource(JSON.stringify(JSON.stringify(response))))
  expect(await fixtures.send()).toEqual({
    status: 201,
    headers: { 'x-one': 'Ünicode' },
    body: Buffer.from([0, 255, 128]),
  })
})

test('distinguishes invalid and oversized responses from valid ones', async () => {
  await using fixtures = await deployProgram(moduleSource('decodeURIComponent(event.rawQueryString)'))
  const send = (text: string) =>
    fixtures.send(get(`/?${encodeURIComponent(text)}`), { timeoutMs: 20_000, maxBytes: 1000 })
  const invalid = ['{}', 'null', '"text"', '[]', 'garbage', '', '7', '{"statusCode":200,"body":{}}']
  const statuses = ['"200"', 99, 199, 600, 200.5, null].map((status) => `{"statusCode":${status}}`)
  for (const text of [...invalid, ...statuses]) {
    await expect(send(text), text).rejects.toMatchObject({ problem: 'crashed' })
  }
  await expect(send(`{"statusCode":200,"body":"${'x'.repeat(1001)}"}`)).rejects.toMatchObject({ problem: 'too_large' })
  expect(await send('{"statusCode":204}')).toEqual({ status: 204, headers: {}, body: Buffer.alloc(0) })
  expect((await send(`{"statusCode":200,"headers":7,"body":"${'x'.repeat(1000)}"}`)).body).toHaveLength(1000)
})

test('rejects a response that exceeds the payload limit of Lambda', async () => {
  await using fixtures = await deployProgram(
    moduleSource(`JSON.stringify({ statusCode: 200, body: 'x'.repeat(6291456) })`),
  )
  const sending = fixtures.send(get('/'), { timeoutMs: 20_000, maxBytes: 2 ** 30 })
  await expect(sending).rejects.toMatchObject({ problem: 'too_large' })
})

/** Reports an error to the Runtime API during initialisation, and exits. */
const initError = (error: string) =>
  `await fetch('http://' + process.env.AWS_LAMBDA_RUNTIME_API + '/2018-06-01/runtime/init/error', { method: 'POST', body: ${JSON.stringify(error)} }); process.exit(1)`

test.each(
  sampled(
    [
      ['exits at start', 'crashed', 'process.exit(3)', /exit status 3/],
      [
        'reports a timeout',
        'timeout',
        initError('{"errorMessage":"7f Task timed out after 1.00 seconds"}'),
        /^7f Task/,
      ],
      [
        'reports an init error',
        'init_failed',
        initError('{"errorType":"PLAT-MOD-5004","errorMessage":"No."}'),
        /^No\.$/,
      ],
      ['is killed during a request', 'crashed', moduleSource(`process.kill(process.pid, 'SIGKILL')`), /SIGKILL/],
      ['exits during a request', 'crashed', moduleSource('process.exit(5)'), /exit status 5/],
      ['reports an invalid error', 'crashed', initError('garbage'), /without a message/],
      ['never responds', 'timeout', moduleSource(never), /Task timed out/],
      ['never requests an event', 'timeout', 'setInterval(() => {}, 1000)', /Task timed out/],
      ['reports a long error', 'crashed', initError(JSON.stringify({ errorMessage: 'x'.repeat(5000) })), /^x{1000}$/],
    ] as const,
    2,
  ),
)('a function that %s has %s', async (name, problem, source, message) => {
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
  const { metafile } = await build({
    entryPoints: ['packages/worker/src/runtimes/lambda/request.ts'],
    bundle: true,
    minify: true,
    platform: 'node',
    format: 'esm',
    write: false,
    metafile: true,
  })
  const [output] = Object.values(metafile.outputs)
  const included = Object.entries(output?.inputs ?? {}).filter(([, { bytesInOutput }]) => bytesInOutput > 0)
  const files = included.map(([file]) => file).filter((file) => file.startsWith('packages/'))
  const lambda = ['errors', 'event', 'names', 'request'].map((name) => `packages/worker/src/runtimes/lambda/${name}.ts`)
  expect(files.toSorted()).toEqual(['packages/sdk/src/protocol.ts', ...lambda, 'packages/worker/src/runtimes/port.ts'])
})
