import type { RateLimitState } from '@platform/core/lib/rate-limit-state'
import { createLimiter } from '@platform/http/rate-limit'
import { afterEach, beforeEach, describe, expect, onTestFinished, test, vi } from 'vitest'
import { handler as auth } from '../../functions/auth.ts'
import { jsonRequest, send } from '../support/request.ts'

vi.hoisted(() =>
  Object.assign(process.env, {
    PLAT_LOG_LEVEL: 'error',
    PLAT_LIMIT_SIGN_IN_STEP_PER_MINUTE: '3',
    PLAT_LIMIT_API_BURST: '40',
  }),
)

describe('a limiter', () => {
  beforeEach(() => void vi.useFakeTimers({ toFake: ['Date', 'performance'] }))
  afterEach(() => void vi.useRealTimers())

  const pass = (ms: number) => vi.advanceTimersByTime(ms)
  const take = (times: number, limit: (principal: string) => RateLimitState, principal = 'a'): RateLimitState[] =>
    Array.from({ length: times }, () => limit(principal))
  const countAllowed = (states: RateLimitState[]): number =>
    states.filter(({ retryAfterSeconds }) => retryAfterSeconds === 0).length

  test('allows a burst', () => {
    const limit = createLimiter({ perMinute: 60, burst: 5 })
    expect(take(5, limit).map(({ remaining }) => remaining)).toEqual([4, 3, 2, 1, 0])
    expect(limit('a')).toEqual({ limit: 5, remaining: 0, resetSeconds: 5, retryAfterSeconds: 1 })
    expect(countAllowed(take(10, createLimiter({ perMinute: 3, burst: 100 })))).toBe(3)
  })

  test.each([1, 3, 7, 10, 59, 600, 1_000_000])('allows one call after `Retry-After` at %d per minute', (perMinute) => {
    const limit = createLimiter({ perMinute, burst: 4 })
    const size = Math.min(4, perMinute)
    expect(countAllowed(take(size, limit))).toBe(size)
    const { retryAfterSeconds } = limit('a')
    expect(retryAfterSeconds).toBeGreaterThan(0)
    pass(retryAfterSeconds * 1000)
    expect(limit('a').retryAfterSeconds).toBe(0)
  })

  test('maintains the average rate', () => {
    const limit = createLimiter({ perMinute: 30, burst: 10 })
    let count = 0
    for (let second = 0; second < 600; second++) {
      count += countAllowed(take(3, limit))
      pass(1000)
    }
    expect(count).toBe(10 + 299)
  })

  test('does not count rejected calls', () => {
    const limit = createLimiter({ perMinute: 10, burst: 10 })
    take(1010, limit)
    pass(6000)
    expect(limit('a').retryAfterSeconds).toBe(0)
  })

  test('allows a full burst after the reset', () => {
    const limit = createLimiter({ perMinute: 60, burst: 8 })
    const { resetSeconds } = take(8, limit)[7] as RateLimitState
    pass(resetSeconds * 1000)
    expect(limit('a').remaining).toBe(7)
    pass(3_600_000)
    expect(countAllowed(take(20, limit))).toBe(8)
  })

  test.each([-1_800_000, -86_400_000, 86_400_000])('does not depend on the clock, which moves by %d ms', (ms) => {
    const limit = createLimiter({ perMinute: 60, burst: 3 })
    take(3, limit)
    vi.setSystemTime(Date.now() + ms)
    expect(limit('a').retryAfterSeconds).toBe(1)
    pass(1000)
    expect(limit('a').retryAfterSeconds).toBe(0)
  })

  test('limits each principal separately, and keeps the ten thousand most recent ones', () => {
    const limit = createLimiter({ perMinute: 1, burst: 1 })
    for (let index = 0; index < 10_000; index++) expect(limit(`address ${index}`).retryAfterSeconds).toBe(0)
    expect(limit('address 0').retryAfterSeconds).toBe(60)
    limit('one more')
    expect(limit('address 0').retryAfterSeconds).toBe(60)
    expect(limit('address 1').retryAfterSeconds).toBe(0)
  })
})

const sameOrigin = { 'sec-fetch-site': 'same-origin' }
const signOut = (address: string, headers: Record<string, string> = {}) =>
  send(auth, { method: 'DELETE', target: '/api/v1/auth/session', headers: { ...sameOrigin, ...headers }, address })

test('limits an IPv6 network as one address, and ignores forwarding headers', async () => {
  const statuses: number[] = []
  for (let lastByte = 1; lastByte <= 4; lastByte++) {
    const forwardedHeaders = { 'X-Forwarded-For': `203.0.113.${lastByte}`, Forwarded: `for=203.0.113.${lastByte}` }
    statuses.push((await signOut(`2001:db8:0:1::${lastByte}`, forwardedHeaders)).status)
  }
  expect(statuses).toEqual([204, 204, 204, 429])
  expect((await signOut('2001:db8:0:2::1')).status).toBe(204)
})

const refreshRequest = { method: 'POST', target: '/api/v1/auth/session/refresh' }
const refresh = (refreshToken: unknown, address = '192.0.2.1') =>
  send(auth, { ...jsonRequest('/api/v1/auth/refresh', { refreshToken }), address })
const refreshBrowser = (token: string, address: string) =>
  send(auth, { ...refreshRequest, headers: { ...sameOrigin, cookie: `__Host-plat_refresh=${token}` }, address })
const continueSession = (refreshToken: string, address: string) =>
  send(auth, { ...jsonRequest('/api/v1/auth/session', { refreshToken }, sameOrigin), address })

test.each([
  ['bodies', refresh],
  ['cookies', refreshBrowser],
  ['browsers that continue a session', continueSession],
])('limits made-up refresh tokens by network, however they vary: %s', async (name, call) => {
  const address = `2001:db8:${name.length}::1`
  vi.useFakeTimers({ toFake: ['performance'] })
  onTestFinished(() => void vi.useRealTimers())
  const statuses: number[] = []
  for (let index = 0; index < 41; index++) statuses.push((await call(`made-up-${index}.${index}.x`, address)).status)
  expect(statuses).toEqual([...Array(40).fill(401), 429])
  expect((await call('made-up.x.y', '203.0.113.7')).status).toBe(401)
})

test.each([[7], [{ toString: 1, valueOf: 1 }]])('rejects the refresh token %j', async (token) => {
  expect((await refresh(token)).json.error).toBe('validation_failed')
})
