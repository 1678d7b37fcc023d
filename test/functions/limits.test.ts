import { messageOf } from '@platform/contract/errors'
import { newId } from '@platform/core/id'
import { issueAccessToken } from '@platform/core/signing/access-token'
import { createSharedLimiter } from '@platform/http/rate-limit'
import { afterEach, beforeEach, expect, test, vi } from 'vitest'
import { measureUsage } from '../core/support/usage.ts'
import { advanceClock } from '../support/clock.ts'
import { advanceToNextMinute, bearer, bootstrapPlatform, enrolledCluster, newCaller } from '../support/fixtures.ts'
import { jsonRequest, type TestRequest, type TestResponse, send } from '../support/request.ts'
import { handlerOf } from './operations.ts'

const burst = 20
const batches = 4
vi.hoisted(() =>
  Object.assign(process.env, {
    PLAT_LIMIT_API_BURST: '20',
    PLAT_LIMIT_BATCH_PER_MINUTE: '4',
    PLAT_LIMIT_ENROLL_PER_MINUTE: '3',
    PLAT_LIMIT_SETUP_PER_MINUTE: '3',
    PLAT_LIMIT_SIGN_IN_STEP_PER_MINUTE: '3',
  }),
)

await bootstrapPlatform()
beforeEach(() => {
  vi.useFakeTimers({ toFake: ['Date', 'performance'] })
  advanceToNextMinute()
})
afterEach(() => void vi.useRealTimers())

type Headers = Record<string, string>

const script = { type: 'InvokeScript', payload: { script: 'true' } }

const listSites = (headers: Headers): Promise<TestResponse> =>
  send(handlerOf('sites'), { target: '/api/v1/sites', headers })

function expectLimited({ status, headers, json }: TestResponse, limit: number): void {
  expect([status, json.error, json.message]).toEqual([429, 'rate_limited', messageOf('rate_limited')])
  expect(headers).toMatchObject({ 'ratelimit-limit': String(limit), 'ratelimit-remaining': '0' })
  expect(Number(headers['retry-after'])).toBeGreaterThan(0)
  expect(Number(headers['ratelimit-reset'])).toBeGreaterThan(0)
}

const repeat = (times: number, call: () => Promise<TestResponse>): Promise<TestResponse[]> =>
  Promise.all(Array.from({ length: times }, call))

test('limits the burst of a user over all functions of a process, and returns the remaining calls', async () => {
  const headers = await bearer(['Viewer'])
  const responses = await repeat(burst + 1, () => listSites(headers))
  const remainingCounts = responses
    .filter(({ status }) => status === 200)
    .map((each) => each.headers['ratelimit-remaining'])
  expect(new Set(remainingCounts)).toEqual(new Set(Array.from({ length: burst }, (_, left) => String(left))))
  const limitedResponses = responses.filter(({ status }) => status !== 200)
  expect(limitedResponses).toHaveLength(1)
  for (const response of limitedResponses) expectLimited(response, burst)
  expectLimited(await send(handlerOf('jobs'), { target: `/api/v1/jobs/${newId('job')}`, headers }), burst)
})

test('serves colleagues and other organisations while one user exceeds the limit', async () => {
  const organisationId = newId('org')
  const [busyHeaders, colleague] = [await bearer(['Viewer'], organisationId), await bearer(['Viewer'], organisationId)]
  const stranger = await bearer(['Viewer'])
  const flood = repeat(burst * 10, () => listSites(busyHeaders))
  for (const headers of [colleague, stranger]) {
    const responses = await repeat(burst, () => listSites(headers))
    expect(responses.filter(({ status }) => status === 200)).toHaveLength(burst)
  }
  expect((await flood).filter(({ status }) => status === 429)).toHaveLength(burst * 9)
})

test('limits accepted batches per organisation across processes; rejected ones do not count; changes of labels likewise', async () => {
  const caller = await newCaller()
  const { cluster } = await enrolledCluster(caller)
  const headersOf = async (role: string) => ({
    authorization: `Bearer ${await issueAccessToken({ ...caller, roles: [role] })}`,
  })
  const [headers, colleague] = [await headersOf('Operator'), await headersOf('OrgAdmin')]
  const submit = (clusterId: unknown, userHeaders = headers) =>
    send(handlerOf('jobs'), jsonRequest('/api/v1/jobs/batch', { jobs: [{ ...script, clusterId }] }, userHeaders))
  const rejectedIds = [7, newId('clus'), 'nothing']
  for (const clusterId of [...rejectedIds, ...rejectedIds])
    expect((await submit(clusterId)).status).toBeOneOf([400, 403])
  const acceptedResponses = await repeat(batches, () => submit(cluster.id))
  expect(acceptedResponses.map(({ status }) => status)).toEqual(Array(batches).fill(202))
  expectLimited(await submit(cluster.id, colleague), batches)
  const request = { target: { clusterIds: [cluster.id] }, set: { env: 'prod' } }
  const label = () => send(handlerOf('clusters'), jsonRequest('/api/v1/clusters/labels', request, colleague))
  expect((await repeat(batches, label)).map(({ status }) => status)).toEqual(Array(batches).fill(200))
  expectLimited(await label(), batches)
  expect((await listSites(colleague)).status).toBe(200)
  advanceClock(60_000)
  expect((await submit(cluster.id)).status).toBe(202)
})

const signIn = jsonRequest('/api/v1/auth/login', { username: 'ada', password: 'wrong password' })

test('returns the state of the limit of failed sign-ins', async () => {
  const states: [status: number, remaining: unknown][] = []
  for (let count = 0; count < 6; count++) {
    const { status, headers } = await send(handlerOf('auth'), { ...signIn, address: '198.51.100.77' })
    states.push([status, headers['ratelimit-remaining']])
    expect(headers['ratelimit-limit']).toBe('5')
  }
  const expectedResponses = ['4', '3', '2', '1', '0'].map((left) => [401, left])
  expect(states).toEqual([...expectedResponses, [429, '0']])
})

const headers = { 'sec-fetch-site': 'same-origin' }
const oidc = `/api/v1/auth/oidc/${newId('idp')}`

test.each<[name: 'setup' | 'identity' | 'auth' | 'relay', sent: TestRequest, status: number]>([
  ['setup', jsonRequest('/api/v1/setup/complete', { initialAdminToken: 'guess' }), 422],
  ['relay', jsonRequest('/api/v1/relay/enroll', {}), 400],
  ['identity', { target: '/api/v1/auth/providers' }, 200],
  ['identity', { target: `${oidc}/authorize` }, 404],
  ['identity', { target: `${oidc}/callback?state=x` }, 302],
  ['identity', jsonRequest('/api/v1/auth/oidc/token', { code: 'x' }), 401],
  ['auth', jsonRequest('/api/v1/auth/session', { code: 'x' }, headers), 401],
  ['auth', { method: 'DELETE', target: '/api/v1/auth/session', headers }, 204],
])('limits requests to %s by address: %j', async (name, sent, status) => {
  const address = `198.51.100.${name.length}${status % 10}`
  const sendFrom = (address: string) => send(handlerOf(name), { ...sent, address })
  for (let count = 0; count < 3; count++) expect((await sendFrom(address)).status).toBe(status)
  expectLimited(await sendFrom(address), 3)
  expect((await sendFrom('203.0.113.8')).status).toBe(status)
})

const newProcesses = (count: number) =>
  Array.from({ length: count }, () => createSharedLimiter({ perMinute: 600, burst: 100 }))

async function allowedOf(processes: ReturnType<typeof newProcesses>, principal: string, calls: number) {
  let allowedCount = 0
  for (let call = 0; call < calls; call++) {
    if ((await processes[call % processes.length]?.(principal)) === 0) allowedCount++
  }
  return allowedCount
}

test.each([1, 7, 40])(
  'the limit of a principal covers %d processes within a factor of two, with a write for ten requests',
  async (count) => {
    const [processes, principal] = [newProcesses(count), newId('user')]
    const { result: allowed, usage } = await measureUsage(() => allowedOf(processes, principal, 4000))
    expect(allowed).toBeGreaterThanOrEqual(700)
    expect(allowed).toBeLessThanOrEqual(1400)
    expect(usage.calls.length).toBeLessThanOrEqual(allowed / 10)
    expect(await allowedOf(processes, newId('user'), 100)).toBe(100)
    advanceClock(60_000)
    expect(await allowedOf(processes, principal, 100)).toBe(100)
  },
)

test('few calls of a principal write nothing', async () => {
  const { usage } = await measureUsage(() => allowedOf(newProcesses(10), newId('user'), 90))
  expect(usage.calls).toEqual([])
})
