import { expect, test, vi } from 'vitest'
import { handler as auth } from '../../functions/auth.ts'
import { handler as relay } from '../../functions/relay.ts'
import { jsonRequest, type TestResponse, send } from '../support/request.ts'

vi.hoisted(() =>
  Object.assign(process.env, {
    PLAT_LOG_LEVEL: 'error',
    PLAT_LIMIT_ENROLL_PER_MINUTE: '3',
    PLAT_LIMIT_REFRESH_PER_MINUTE: '2',
  }),
)

const enrollFrom = (address: string): Promise<TestResponse> =>
  send(relay, { ...jsonRequest('/api/v1/relay/enroll', {}), address })
const refresh = (refreshToken: unknown): Promise<TestResponse> =>
  send(auth, jsonRequest('/api/v1/auth/refresh', { refreshToken }))

test('enrolling is limited by address, before anything is looked at', async () => {
  const address = '198.51.100.1'
  for (const remaining of ['2', '1', '0']) {
    const { status, headers } = await enrollFrom(address)
    expect(status).toBe(400)
    expect(headers).toMatchObject({ 'ratelimit-limit': '3', 'ratelimit-remaining': remaining })
  }
  const refused = await enrollFrom(address)
  expect(refused.status).toBe(429)
  expect(refused.json).toMatchObject({ error: 'rate_limited', traceId: refused.headers['x-trace-id'] })
  expect(Number(refused.headers['retry-after'])).toBeGreaterThan(0)
  expect(Number(refused.headers['ratelimit-reset'])).toBeGreaterThan(0)
  expect((await enrollFrom('198.51.100.2')).status).toBe(400)
})

test('whoever has one address of an IPv6 network has them all, and is limited as one', async () => {
  const addresses = [1, 2, 3, 4].map((last) => `2001:db8:0:1::${last}`)
  const statuses: number[] = []
  for (const address of addresses) statuses.push((await enrollFrom(address)).status)
  expect(statuses).toEqual([400, 400, 400, 429])
  expect((await enrollFrom('2001:db8:0:2::1')).status).toBe(400)
})

test('a header cannot make one address look like another', async () => {
  const sent = { ...jsonRequest('/api/v1/relay/enroll', {}), address: '198.51.100.3' }
  const statuses: number[] = []
  for (let index = 0; index < 5; index++) {
    const headers = { ...sent.headers, 'X-Forwarded-For': `203.0.113.${index}`, Forwarded: `for=203.0.113.${index}` }
    statuses.push((await send(relay, { ...sent, headers })).status)
  }
  expect(statuses).toEqual([400, 400, 400, 429, 429])
})

test('refreshing is limited by session, whatever secret follows it', async () => {
  expect((await refresh('session-1.a.secret')).status).toBe(401)
  expect((await refresh('session-1.b.other')).status).toBe(401)
  expect((await refresh('session-1.c')).status).toBe(429)
  expect((await refresh('session-2.a.secret')).status).toBe(401)
})

const ofPage = { 'sec-fetch-site': 'same-origin' }
const renewal = { method: 'POST', target: '/api/v1/auth/session/refresh' }
const renew = (token: string): Promise<TestResponse> =>
  send(auth, { ...renewal, headers: { ...ofPage, cookie: `__Host-plat_refresh=${token}` } })
const takeOver = (refreshToken: string): Promise<TestResponse> =>
  send(auth, jsonRequest('/api/v1/auth/session', { refreshToken }, ofPage))

test.each([
  ['a', [renew, takeOver, refresh]],
  ['b', [takeOver, refresh, renew]],
  ['c', [refresh, renew, takeOver]],
])(
  'renewals are limited by session, be its token in a cookie, to be taken over, or in a body: %s',
  async (name, ways) => {
    const statuses = []
    for (const way of ways) statuses.push((await way(`browser-${name}.x.secret`)).status)
    expect(statuses).toEqual([401, 401, 429])
  },
)

test('a browser without a cookie is limited by its address', async () => {
  const statuses = []
  for (const address of ['198.51.100.3', '198.51.100.3', '198.51.100.3', '198.51.100.4']) {
    statuses.push((await send(auth, { ...renewal, headers: ofPage, address })).status)
  }
  expect(statuses).toEqual([401, 401, 429, 401])
})

test('a refresh token of the wrong type is refused by its schema', async () => {
  for (const token of [7, { toString: 1, valueOf: 1 }]) {
    expect((await refresh(token)).json.error).toBe('validation_failed')
  }
})
