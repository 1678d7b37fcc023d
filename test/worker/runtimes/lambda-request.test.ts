import { type Deployment } from '@platform/core/modules/record'
import { type ModuleRequest } from '@platform/worker/runtimes/port'
import { build } from 'esbuild'
import { describe, expect, test } from 'vitest'
import {
  moduleSource,
  startLambdaFixtures,
  type LambdaOptionsInput,
  type InterceptCall,
} from '../../support/lambda-runtime.ts'
import { deploymentSpecOf, limits, textOf } from '../../support/local-runtime.ts'
import { pushFixture, pushProgram } from '../../support/module-image.ts'

/** A deployment of a program. */
async function serving(source: string, wish: LambdaOptionsInput = {}) {
  const world = await startLambdaFixtures(wish)
  const deployment = await world.runtime.deploy(
    deploymentSpecOf(await pushProgram(world.registry, 'modules/it', source)),
  )
  return { ...world, deployment, [Symbol.asyncDispose]: () => world[Symbol.asyncDispose]() }
}

/** What a program that goes on for ever makes of an event. */
const never = 'new Promise(() => setInterval(() => {}, 1000))'

const get = (path: string): ModuleRequest => ({ method: 'GET', path })

describe('a request', () => {
  test('becomes an event of API Gateway, with the token of its deployment', async () => {
    await using world = await serving(moduleSource(`JSON.stringify({ statusCode: 200, body: JSON.stringify(event) })`))
    const { runtime, deployment } = world
    const body = Buffer.from([0, 255, 128])
    const headers = { 'Content-Type': 'application/octet-stream', 'X-Platform-Token': 'forged' }
    const request = { method: 'PUT', path: '/api/a%2Fb%20c?q=%C3%A4&q=2', headers, body }
    const event = JSON.parse(textOf(await runtime.request(deployment, request, limits)))
    expect(event).toMatchObject({
      version: '2.0',
      rawPath: '/api/a%2Fb%20c',
      rawQueryString: 'q=%C3%A4&q=2',
      headers: {
        'content-type': 'application/octet-stream',
        'x-platform-token': `token of ${deployment.id}`,
        host: 'module',
      },
      requestContext: { http: { method: 'PUT', path: '/api/a%2Fb%20c' } },
      body: 'AP+A',
      isBase64Encoded: true,
    })
    expect(Object.keys(event.headers)).toHaveLength(3)
    const bare = JSON.parse(textOf(await runtime.request(deployment, get('/'), limits)))
    expect(bare).toMatchObject({ rawPath: '/', rawQueryString: '', isBase64Encoded: false })
    expect(bare).not.toHaveProperty('body')
  })

  test('arrives at a module of the SDK as it does on any runtime: path, query, bytes and all', async () => {
    await using world = await startLambdaFixtures()
    const { runtime } = world
    const deployment = await runtime.deploy(deploymentSpecOf(await pushFixture(world.registry, 'calm')))
    const body = Buffer.from(Uint8Array.from({ length: 256 }, (_, index) => index))
    const echoed = await runtime.request(deployment, { method: 'POST', path: '/api/calm/echo', body }, limits)
    expect([echoed.status, echoed.headers['x-method'], Buffer.compare(echoed.body, body)]).toEqual([200, 'POST', 0])
    const headers = { Accept: 'text/html', 'x-any': 'thing' }
    const seen = JSON.parse(textOf(await runtime.request(deployment, { ...get('/api/calm/headers'), headers }, limits)))
    expect(seen).toMatchObject({ accept: 'text/html', 'x-any': 'thing' })
    expect(seen).not.toHaveProperty('x-platform-token')
    expect((await runtime.request(deployment, get('/api/calm%2Fecho'), limits)).status).toBe(404)
    expect((await runtime.request(deployment, get('/nothing?at=all'), limits)).status).toBe(404)
  })

  test.each<[what: string, fails: InterceptCall]>([
    ['is throttled', async () => Promise.reject(Object.assign(new Error('no'), { name: 'TooManyRequestsException' }))],
    ['finds nobody', async () => Promise.reject(Object.assign(new Error('no'), { code: 'ECONNREFUSED' }))],
  ])('that %s has reached nobody: the module is unavailable', async (_what, fails) => {
    await using world = await serving(moduleSource(`JSON.stringify({ statusCode: 200 })`))
    const runtime = world.another({}, fails)
    await expect(runtime.request(world.deployment, get('/'), limits)).rejects.toMatchObject({ problem: 'unavailable' })
  })

  test('whose answer is lost may have been carried out: it is not sent again, and does not pass for unsent', async () => {
    await using world = await serving(moduleSource(`JSON.stringify({ statusCode: 200 })`))
    let calls = 0
    const runtime = world.another({}, async (_, send) => {
      calls++
      await send()
      throw Object.assign(new Error('socket hang up'), { code: 'ECONNRESET' })
    })
    await expect(runtime.request(world.deployment, get('/'), limits)).rejects.toMatchObject({ problem: 'crashed' })
    expect(calls).toBe(1)
  })

  test('that is one too many is refused by Lambda, and not sent again', async () => {
    const slow = `new Promise((resolve) => setTimeout(resolve, 300, JSON.stringify({ statusCode: 200 })))`
    await using world = await serving(moduleSource(slow), { concurrency: 1 })
    const ask = () => world.runtime.request(world.deployment, get('/'), limits)
    const results = await Promise.allSettled([ask(), ask()])
    expect(results.map(({ status }) => status).toSorted()).toEqual(['fulfilled', 'rejected'])
    expect(results).toContainEqual({ status: 'rejected', reason: expect.objectContaining({ problem: 'unavailable' }) })
  })

  test('that is larger than Lambda takes is not carried', async () => {
    await using world = await serving(moduleSource(`JSON.stringify({ statusCode: 200 })`))
    const body = Buffer.alloc(5 * 1024 * 1024)
    const request = world.runtime.request(world.deployment, { method: 'POST', path: '/', body }, limits)
    await expect(request).rejects.toMatchObject({ problem: 'too_large' })
  })

  test('is waited for as long as the caller says', async () => {
    await using world = await serving(moduleSource(never))
    const request = world.runtime.request(world.deployment, get('/'), { timeoutMs: 300, maxBytes: 1 })
    await expect(request).rejects.toMatchObject({ problem: 'timeout', message: expect.stringContaining('300 ms') })
  })

  test('to a deployment that is none finds nobody', async () => {
    await using world = await startLambdaFixtures()
    const gone: Deployment = {
      runtime: 'lambda',
      isolation: '',
      id: 'gone-1',
      moduleId: 'gone',
      version: '1.0.0',
      digest: '',
      handle: 'mod-gone:1',
    }
    await expect(world.runtime.request(gone, get('/'), limits)).rejects.toMatchObject({ problem: 'unavailable' })
    await world.lambda.close()
    await expect(world.another().request(gone, get('/'), limits)).rejects.toMatchObject({ problem: 'unavailable' })
  })
})

describe('an answer', () => {
  test('has its status, its bytes and its headers, without cookies and what HTTP cannot carry', async () => {
    const answer = {
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
    await using world = await serving(moduleSource(JSON.stringify(JSON.stringify(answer))))
    expect(await world.runtime.request(world.deployment, get('/'), limits)).toEqual({
      status: 201,
      headers: { 'x-one': 'Ünicode' },
      body: Buffer.from([0, 255, 128]),
    })
  })

  test('that is none, or too large, is told apart from one', async () => {
    await using world = await serving(moduleSource('decodeURIComponent(event.rawQueryString)'))
    const problemOf = (text: string) =>
      world.runtime
        .request(world.deployment, get(`/?${encodeURIComponent(text)}`), { timeoutMs: 20_000, maxBytes: 1000 })
        .then(String, ({ problem }) => problem)
    const none = ['{}', 'null', '"text"', '[]', 'garbage', '', '7']
    const strange = ['"200"', 99, 199, 600, 200.5, null].map((status) => `{"statusCode":${status}}`)
    for (const text of [...none, ...strange, '{"statusCode":200,"body":{}}']) {
      expect([text, await problemOf(text)]).toEqual([text, 'crashed'])
    }
    expect(await problemOf(`{"statusCode":200,"body":"${'x'.repeat(1001)}"}`)).toBe('too_large')
    expect(await problemOf('{"statusCode":200}')).toBe('[object Object]')
  })

  test('may have no headers, no body, and as many bytes as the caller takes', async () => {
    await using world = await serving(
      moduleSource(
        `event.rawPath === '/' ? '{"statusCode":204}' : '{"statusCode":200,"headers":7,"body":"${'x'.repeat(1000)}"}'`,
      ),
    )
    const ask = (path: string) =>
      world.runtime.request(world.deployment, get(path), { timeoutMs: 20_000, maxBytes: 1000 })
    expect(await ask('/')).toEqual({ status: 204, headers: {}, body: Buffer.alloc(0) })
    expect((await ask('/full')).body).toHaveLength(1000)
  })

  test('of more than Lambda carries is too large', async () => {
    await using world = await serving(moduleSource(`JSON.stringify({ statusCode: 200, body: 'x'.repeat(6291456) })`))
    const request = world.runtime.request(world.deployment, get('/'), { timeoutMs: 20_000, maxBytes: 2 ** 30 })
    await expect(request).rejects.toMatchObject({ problem: 'too_large' })
  })
})

/** Tells something to the Runtime API. */
const post = (path: string, error: string) =>
  `await fetch('http://' + process.env.AWS_LAMBDA_RUNTIME_API + '/2018-06-01/runtime${path}', { method: 'POST', body: ${JSON.stringify(error)} })`

/** A function that does not get ready. */
const saying = (error: string) => `${post('/init/error', error)}; process.exit(1)`

describe('a function that fails', () => {
  test.each([
    ['ends as it begins', 'crashed', 'process.exit(3)', /exit status 3/],
    ['ends over a request', 'crashed', moduleSource('process.exit(5)'), /exit status 5/],
    ['is killed over a request', 'crashed', moduleSource(`process.kill(process.pid, 'SIGKILL')`), /SIGKILL/],
    ['never asks for work', 'timeout', 'setInterval(() => {}, 1000)', /Task timed out/],
    ['is said to be late', 'timeout', saying('{"errorMessage":"7f Task timed out after 1.00 seconds"}'), /^7f Task/],
    ['never answers', 'timeout', moduleSource(never), /Task timed out/],
    [
      'says that it cannot begin',
      'init_failed',
      saying('{"errorType":"PLAT-MOD-5004","errorMessage":"No."}'),
      /^No\.$/,
    ],
    ['says nothing of use', 'crashed', saying('garbage'), /says nothing/],
    ['says too much', 'crashed', saying(JSON.stringify({ errorMessage: 'x'.repeat(5000) })), /^x{1000}$/],
  ])('%s: %s', async (what, problem, source, message) => {
    const isEndless = what.startsWith('never')
    await using world = await serving(source, isEndless ? { initLimitMs: 500, settings: { timeoutSeconds: 1 } } : {})
    await expect(world.runtime.request(world.deployment, get('/'), limits)).rejects.toMatchObject({
      problem,
      message: expect.stringMatching(message),
    })
  })

  test('was not made for this machine: it cannot begin', async () => {
    await using world = await startLambdaFixtures()
    const image = await pushProgram(world.registry, 'modules/it', '', { config: { Cmd: ['/bin/server'] } })
    const deployment = await world.runtime.deploy(deploymentSpecOf(image))
    await expect(world.runtime.request(deployment, get('/'), limits)).rejects.toMatchObject({ problem: 'init_failed' })
  })
})

test('the part that asks carries no code that deploys', async () => {
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
  const carried = Object.entries(output?.inputs ?? {}).filter(([, { bytesInOutput }]) => bytesInOutput > 0)
  const own = carried.map(([file]) => file).filter((file) => file.startsWith('packages/'))
  expect(own.toSorted()).toEqual([
    'packages/sdk/src/protocol.ts',
    'packages/worker/src/runtimes/lambda/errors.ts',
    'packages/worker/src/runtimes/lambda/event.ts',
    'packages/worker/src/runtimes/lambda/names.ts',
    'packages/worker/src/runtimes/lambda/request.ts',
    'packages/worker/src/runtimes/port.ts',
  ])
})
