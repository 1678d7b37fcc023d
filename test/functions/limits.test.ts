import { messageOf } from '@platform/contract/errors'
import { newId } from '@platform/core/id'
import { afterEach, beforeEach, expect, test, vi } from 'vitest'
import { bearer, bootstrapPlatform } from '../support/fixtures.ts'
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
beforeEach(() => void vi.useFakeTimers({ toFake: ['Date'] }))
afterEach(() => void vi.useRealTimers())

type Headers = Record<string, string>

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
  const remaining = responses.filter(({ status }) => status === 200).map((each) => each.headers['ratelimit-remaining'])
  expect(new Set(remaining)).toEqual(new Set(Array.from({ length: burst }, (_, left) => String(left))))
  const limited = responses.filter(({ status }) => status !== 200)
  expect(limited).toHaveLength(1)
  for (const response of limited) expectLimited(response, burst)
  expectLimited(await send(handlerOf('jobs'), { target: `/api/v1/jobs/${newId('job')}`, headers }), burst)
})

test('serves colleagues and other organisations while one user exceeds the limit', async () => {
  const organisationId = newId('org')
  const [busy, colleague] = [await bearer(['Viewer'], organisationId), await bearer(['Viewer'], organisationId)]
  const stranger = await bearer(['Viewer'])
  const flood = repeat(burst * 10, () => listSites(busy))
  for (const headers of [colleague, stranger]) {
    const responses = await repeat(burst, () => listSites(headers))
    expect(responses.filter(({ status }) => status === 200)).toHaveLength(burst)
  }
  expect((await flood).filter(({ status }) => status === 429)).toHaveLength(burst * 9)
})

test('limits batches per organisation, separately from other operations', async () => {
  const submitBatch = (headers: Headers) =>
    send(handlerOf('jobs'), jsonRequest('/api/v1/jobs/batch', { jobs: [] }, headers))
  const organisationId = newId('org')
  const users = [await bearer(['Operator'], organisationId), await bearer(['OrgAdmin'], organisationId)] as const
  for (let count = 0; count < batches; count++) {
    const { status, headers } = await submitBatch(users[count % 2] ?? users[0])
    expect([status, headers['ratelimit-remaining']]).toEqual([400, String(batches - count - 1)])
  }
  for (const headers of users) expectLimited(await submitBatch(headers), batches)
  expect((await listSites(users[0])).status).toBe(200)
  expect((await submitBatch(await bearer(['Operator']))).status).toBe(400)
  vi.setSystemTime(Date.now() + 60_000 / batches)
  expect((await submitBatch(users[0])).status).toBe(400)
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
  const first = `198.51.100.${name.length}${status % 10}`
  const sendFrom = (address: string) => send(handlerOf(name), { ...sent, address })
  for (let count = 0; count < 3; count++) expect((await sendFrom(first)).status).toBe(status)
  expectLimited(await sendFrom(first), 3)
  expect((await sendFrom('203.0.113.8')).status).toBe(status)
})
