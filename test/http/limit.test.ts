import { afterEach, beforeEach, expect, test, vi } from 'vitest'
import { limiter, type RateLimitState } from '@platform/http/rate-limit'

// Time stands still unless a test moves it.
beforeEach(() => void vi.useFakeTimers({ toFake: ['Date'], now: 1_700_000_000_000 }))
afterEach(() => void vi.useRealTimers())

const pass = (ms: number) => vi.setSystemTime(Date.now() + ms)
const take = (times: number, limit: (principal: string) => RateLimitState, principal = 'a'): RateLimitState[] =>
  Array.from({ length: times }, () => limit(principal))
const allowed = (standings: RateLimitState[]): number =>
  standings.filter(({ retryAfterSeconds }) => retryAfterSeconds === 0).length

test('a burst is allowed and the next call is not', () => {
  const limit = limiter({ perMinute: 60, burst: 5 })
  expect(take(5, limit).map(({ remaining }) => remaining)).toEqual([4, 3, 2, 1, 0])
  expect(limit('a')).toEqual({ limit: 5, remaining: 0, resetSeconds: 5, retryAfterSeconds: 1 })
})

test('whoever waits as long as told is allowed again, once', () => {
  for (const perMinute of [1, 3, 7, 10, 59, 600, 1_000_000]) {
    const limit = limiter({ perMinute, burst: 4 })
    const size = Math.min(4, perMinute)
    expect(allowed(take(size, limit))).toBe(size)
    const { retryAfterSeconds } = limit('a')
    expect(retryAfterSeconds).toBeGreaterThan(0)
    pass(retryAfterSeconds * 1000)
    expect(limit('a').retryAfterSeconds).toBe(0)
  }
})

test('the average holds over a long time, however often somebody asks', () => {
  const limit = limiter({ perMinute: 30, burst: 10 })
  let count = 0
  for (let second = 0; second < 600; second++) {
    count += allowed(take(3, limit))
    pass(1000)
  }
  expect(count).toBe(10 + 299)
})

test('refused calls cost nothing: asking on does not push the next allowed call away', () => {
  const limit = limiter({ perMinute: 10, burst: 10 })
  take(10, limit)
  take(1000, limit)
  pass(6000)
  expect(limit('a').retryAfterSeconds).toBe(0)
})

test('after the reset all calls are there again, and no more than that', () => {
  const limit = limiter({ perMinute: 60, burst: 8 })
  const { resetSeconds } = take(8, limit)[7] as RateLimitState
  pass(resetSeconds * 1000)
  expect(limit('a').remaining).toBe(7)
  pass(3_600_000)
  expect(allowed(take(20, limit))).toBe(8)
})

test('a burst larger than the minute is cut to the minute', () => {
  expect(allowed(take(10, limiter({ perMinute: 3, burst: 100 })))).toBe(3)
})

test('one principal does not pay for another', () => {
  const limit = limiter({ perMinute: 2, burst: 2 })
  expect(allowed(take(5, limit, 'a'))).toBe(2)
  expect(allowed(take(5, limit, 'b'))).toBe(2)
})

test('a clock that steps back neither locks anybody out nor opens the gate', () => {
  const limit = limiter({ perMinute: 60, burst: 3 })
  take(3, limit)
  pass(-10_000)
  expect(limit('a').retryAfterSeconds).toBeLessThanOrEqual(11)
  pass(20_000)
  expect(limit('a').retryAfterSeconds).toBe(0)
})

test('ten thousand principals are remembered; of more, those that called last', () => {
  const limit = limiter({ perMinute: 1, burst: 1 })
  for (let index = 0; index < 10_000; index++) limit(`address ${index}`)
  expect(limit('address 0').retryAfterSeconds).toBe(60)
  limit('one more')
  expect(limit('address 0').retryAfterSeconds).toBe(60)
  expect(limit('address 1').retryAfterSeconds).toBe(0)
})
