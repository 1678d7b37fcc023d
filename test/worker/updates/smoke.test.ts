import { expect, test, vi } from 'vitest'
import { routes } from '@platform/contract/index'
import { apiFunctions } from '@platform/core/updates/function-names'
import { getEvent, readiness, smokeRequests } from '@platform/worker/updates/smoke'
import { TargetError } from '@platform/worker/updates/target/port'
import { platformFunctions } from './support/feed.ts'
import { type Behaviour, good } from './support/memory-target.ts'
import { attempt, expectAttempt, jobOf, setUpUpdates } from './support/updating.ts'

const feed = await vi.hoisted(async () => (await import('./support/feed.ts')).startFeed())
const { newUpdate } = await setUpUpdates(feed)

test('probes every function, and requests each API function, before it shifts traffic', async () => {
  const calls: string[] = []
  const { target, update } = await newUpdate()
  target.hook.after = async ({ name, input }) => {
    if (name !== 'invoke' || target.shares.length > 0) return
    const [, functionName, event]: any = input
    calls.push(event.platformProbe ? `${functionName} probe` : `${functionName} GET ${event.rawPath}`)
  }
  await attempt(update, target.port)
  expect(calls.filter((each) => each.endsWith('probe'))).toEqual(platformFunctions.map((name) => `${name} probe`))
  for (const each of ['health GET /health/ready', 'clusters GET /api/v1/clusters']) {
    expect([each, calls.filter((other) => other === each).length]).toEqual([each, 8])
  }
  expect(calls).toHaveLength(platformFunctions.length + 16)
})

let count = 0
const failHalf =
  (behaviour: Behaviour): Behaviour =>
  (name, event) =>
    event.platformProbe || count++ % 2 === 0 ? behaviour(name, event) : { statusCode: 500 }

/** Passes the probe; one function responds to requests with `response`. */
const responding =
  (functionName: string, response: unknown) =>
  (version: string): Behaviour =>
  (name, event) =>
    event.platformProbe || name !== functionName ? good(version)(name, event) : response

const broken: [what: string, behaviour: (version: string) => Behaviour, message: RegExp][] = [
  ['responds 500 to every second request', (version) => failHalf(good(version)), /responds 500 to GET \//],
  [
    'is not ready',
    responding('health', { statusCode: 503 }),
    /Function health .+ responds 503 to GET \/health\/ready\./,
  ],
  ['has no health endpoint', responding('health', { statusCode: 404 }), /responds 404 to GET \/health\/ready\./],
  ['returns no gateway response', responding('clusters', 'ok'), /responds 500 to GET \/api\/v1\/clusters\./],
  [
    'crashes at start',
    () => () => Promise.reject(new TargetError('Runtime exited with error: exit status 1')),
    /fails: Runtime exited with error: exit status 1\./,
  ],
  [
    'fails in one function',
    (version) => (name, event) =>
      name === 'queue/jobs' ? Promise.reject(new Error('Cannot find module')) : good(version)(name, event),
    /Function queue\/jobs .+ fails: Cannot find module\./,
  ],
  ['reports another version', () => good('9.9.9'), /reports version 9\.9\.9\./],
  ['reports no version', () => () => 'ok', /reports no version\./],
]

test.each(broken)('gives no traffic to a release that %s', async (_, behaviour, message) => {
  const { target, update, newer } = await newUpdate()
  target.behaviours.set(newer.version, behaviour(newer.version))
  const output = await expectAttempt(update, target, 'Failed')
  expect(target.shares).toEqual([])
  expect((await jobOf(update)).steps?.find(({ status }) => status === 'Failed')?.name).toBe('smoke')
  expect(output).toMatch(new RegExp(`^Function [a-z/]+ of version ${newer.version} .+ Version .+ serves\\.$`))
  expect(output).toMatch(message)
})

test('accepts a function that requires a token', async () => {
  const { target, update, newer } = await newUpdate()
  target.behaviours.set(newer.version, responding('clusters', { statusCode: 401 })(newer.version))
  await expectAttempt(update, target, 'Completed')
})

test('builds an unauthenticated GET event of API Gateway', () => {
  expect(getEvent('/api/v1/sites')).toEqual({
    version: '2.0',
    routeKey: '$default',
    rawPath: '/api/v1/sites',
    rawQueryString: '',
    headers: { host: 'platform', 'user-agent': 'platform-update' },
    requestContext: {
      http: {
        method: 'GET',
        path: '/api/v1/sites',
        protocol: 'HTTP/1.1',
        sourceIp: '100::',
        userAgent: 'platform-update',
      },
      routeKey: '$default',
      stage: '$default',
    },
    isBase64Encoded: false,
  })
})

test('has one request for each API function, two of them with an exact status', () => {
  expect(smokeRequests.map(({ functionName }) => functionName).toSorted()).toEqual(apiFunctions.toSorted())
  expect(smokeRequests.filter(({ status }) => status !== undefined)).toEqual([
    readiness,
    { functionName: 'portal', path: '/', status: 200 },
  ])
  expect(readiness).toEqual({ functionName: 'health', path: '/health/ready', status: 200 })
})

test('prefers GET routes that need a sign-in, because they have no effect', () => {
  const pathOf = (name: string) => smokeRequests.find(({ functionName }) => functionName === name)?.path
  expect(['gateway/modules', 'clusters', 'auth', 'updates'].map(pathOf)).toEqual([
    '/api/-',
    '/api/v1/clusters',
    '/api/v1/auth/me',
    '/api/v1/platform/updates/check',
  ])
  // These functions have public routes only.
  expect(['setup', 'relay'].map(pathOf)).toEqual(['/api/v1/setup/status', '/api/v1/relay/enroll'])
  const endpoints = routes.map(({ function: name, endpoint }) => ({ name, ...endpoint }))
  for (const { functionName, path } of smokeRequests.filter(({ status }) => status === undefined)) {
    const own = endpoints.filter(({ name, method }) => name === functionName && method === 'get')
    const closed = own.filter(({ access }) => access !== 'public')
    const requested = own.find((endpoint) => endpoint.path.replaceAll(/\{\w+\}/g, '-') === path)
    if (closed.length > 0) expect([functionName, requested?.access]).not.toEqual([functionName, 'public'])
    if (own.length > 0) expect([functionName, requested?.method]).toEqual([functionName, 'get'])
  }
})
