import { afterEach, beforeEach, expect, test, vi } from 'vitest'
import { messageOf } from '@platform/contract/errors'
import { newId } from '@platform/core/id'
import { jsonRequest, type TestResponse, send } from '../support/request.ts'
import { bearer, bootstrapPlatform } from '../support/fixtures.ts'
import { handlerOf } from './table.ts'

const burst = 20
const batches = 4
vi.hoisted(() =>
  Object.assign(process.env, {
    PLAT_LIMIT_API_BURST: '20',
    PLAT_LIMIT_BATCH_PER_MINUTE: '4',
    PLAT_LIMIT_SETUP_PER_MINUTE: '3',
    PLAT_LIMIT_SIGN_IN_STEP_PER_MINUTE: '3',
  }),
)

await bootstrapPlatform()
// Time stands still unless a test moves it.
beforeEach(() => void vi.useFakeTimers({ toFake: ['Date'] }))
afterEach(() => void vi.useRealTimers())
const pass = (seconds: number): void => void vi.setSystemTime(Date.now() + seconds * 1000)

type Headers = Record<string, string>

const listSites = (headers: Headers): Promise<TestResponse> =>
  send(handlerOf('sites'), { target: '/api/v1/sites', headers })

/** Refused for now, with all that a client needs to know when to come back. */
function expectRefused({ status, headers, json }: TestResponse, limit: number): void {
  expect(status).toBe(429)
  expect(json).toEqual({
    error: 'rate_limited',
    message: messageOf('rate_limited'),
    traceId: headers['x-trace-id'],
  })
  expect(headers).toMatchObject({ 'ratelimit-limit': String(limit), 'ratelimit-remaining': '0' })
  expect(Number(headers['retry-after'])).toBeGreaterThan(0)
  expect(Number(headers['ratelimit-reset'])).toBeGreaterThan(0)
}

const flood = (times: number, call: () => Promise<TestResponse>): Promise<TestResponse[]> =>
  Promise.all(Array.from({ length: times }, call))

const statuses = (answers: TestResponse[]): number[] => answers.map(({ status }) => status).toSorted((a, b) => a - b)

test('a user has so many calls at once, over all functions of one process, and is told how many are left', async () => {
  const headers = await bearer(['Viewer'])
  const answers = await flood(burst + 1, () => listSites(headers))
  const allowed = answers.filter(({ status }) => status === 200)
  expect(new Set(allowed.map(({ headers }) => Number(headers['ratelimit-remaining'])))).toEqual(
    new Set(Array.from({ length: burst }, (_, left) => left)),
  )
  const refused = answers.filter(({ status }) => status !== 200)
  expect(refused).toHaveLength(1)
  for (const answer of refused) expectRefused(answer, burst)
  expectRefused(await send(handlerOf('jobs'), { target: `/api/v1/jobs/${newId('job')}`, headers }), burst)
})

test('the flood of one user keeps nobody else from being served, neither a colleague nor another organisation', async () => {
  const organisationId = newId('org')
  const [flooding, colleague] = [await bearer(['Viewer'], organisationId), await bearer(['Viewer'], organisationId)]
  const stranger = await bearer(['Viewer'])
  const flooded = flood(burst * 10, () => listSites(flooding))
  const others = await Promise.all([colleague, stranger].map((headers) => flood(burst, () => listSites(headers))))
  for (const answers of others) expect(statuses(answers)).toEqual(Array.from({ length: burst }, () => 200))
  expect((await flooded).filter(({ status }) => status === 429)).toHaveLength(burst * 9)
  expectRefused(await listSites(flooding), burst)
})

const submitBatch = (headers: Headers): Promise<TestResponse> =>
  send(handlerOf('jobs'), jsonRequest('/api/v1/jobs/batch', { jobs: [] }, headers))

test('batches are limited by organisation, whoever of it submits them, and nothing else is with them', async () => {
  const organisationId = newId('org')
  const [one, other] = [await bearer(['Operator'], organisationId), await bearer(['OrgAdmin'], organisationId)]
  for (let count = 0; count < batches; count++) {
    const { status, headers } = await submitBatch(count % 2 === 0 ? one : other)
    expect([status, headers['ratelimit-remaining']]).toEqual([400, String(batches - count - 1)])
  }
  for (const headers of [one, other]) expectRefused(await submitBatch(headers), batches)
  expect((await listSites(one)).status).toBe(200)
  expect((await submitBatch(await bearer(['Operator']))).status).toBe(400)
  pass(60 / batches)
  expect((await submitBatch(one)).status).toBe(400)
})

const guess = (address: string): Promise<TestResponse> =>
  send(handlerOf('setup'), { ...jsonRequest('/api/v1/setup/complete', { initialAdminToken: 'guess' }), address })

test('setup is limited by address: its token cannot be guessed', async () => {
  for (let count = 0; count < 3; count++) expect((await guess('198.51.100.9')).status).toBe(422)
  expectRefused(await guess('198.51.100.9'), 3)
  expect((await guess('198.51.100.10')).status).toBe(422)
})

const page = { 'sec-fetch-site': 'same-origin' }

test.each([
  ['ask whom to sign in', () => ({ target: '/api/v1/auth/providers' }), 200],
  ['begin', () => ({ target: `/api/v1/auth/oidc/${newId('idp')}/authorize` }), 404],
  ['come back', () => ({ target: `/api/v1/auth/oidc/${newId('idp')}/callback?state=x` }), 302],
  ['fetch tokens', () => jsonRequest('/api/v1/auth/oidc/token', { code: 'x' }), 401],
])('those who %s with identity providers are limited by address', async (_, sent, status) => {
  const from = (address: string) => send(handlerOf('identity'), { ...sent(), address })
  for (let count = 0; count < 3; count++) expect((await from('198.51.100.7')).status).toBe(status)
  expectRefused(await from('198.51.100.7'), 3)
  expect((await from('198.51.100.8')).status).toBe(status)
})

test.each([
  ['sign in with a code', () => jsonRequest('/api/v1/auth/session', { code: 'x' }, page), 401],
  ['sign out', () => ({ method: 'DELETE', target: '/api/v1/auth/session', headers: page }), 204],
])('browsers that %s are limited by address', async (_, sent, status) => {
  const from = (address: string) => send(handlerOf('auth'), { ...sent(), address })
  for (let count = 0; count < 3; count++) expect((await from('198.51.100.27')).status).toBe(status)
  expectRefused(await from('198.51.100.27'), 3)
  expect((await from('198.51.100.28')).status).toBe(status)
})
