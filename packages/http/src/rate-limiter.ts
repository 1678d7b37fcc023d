import { now } from '@platform/core/clock'

/** How often something may happen: on average, and at most at once. */
export interface RateLimit {
  perMinute: number
  burst: number
}

/** What a limit says to one call. */
export interface RateLimitState {
  /** The most calls at once. */
  limit: number
  remaining: number
  /** Until all calls are there again. */
  resetSeconds: number
  /** Until the next call is allowed; 0 where this one is. */
  retryAfterSeconds: number
}

/** Counts one call of a principal. */
export type Limiter = (principal: string) => RateLimitState

const maximumBuckets = 10_000

/**
 * A token bucket for each principal, in this process. A bucket is kept as the time at which it will be full again: a
 * call moves that time on, and is refused where a bucket that is empty now would be full sooner.
 */
export function limiter({ perMinute, burst }: RateLimit): Limiter {
  const limit = Math.min(burst, perMinute)
  const costMs = 60_000 / perMinute
  // Times are sums of fractions.
  const toleranceMs = Math.min(1, costMs / 2)
  const fullAtMs = new Map<string, number>()

  return (principal) => {
    const nowMs = now()
    const untilFullMs = Math.max(0, (fullAtMs.get(principal) ?? 0) - nowMs)
    const waitMs = untilFullMs + costMs - limit * costMs
    const isAllowed = waitMs < toleranceMs
    const thenUntilFullMs = isAllowed ? untilFullMs + costMs : untilFullMs
    remember(fullAtMs, principal, nowMs + thenUntilFullMs)
    return {
      limit,
      remaining: Math.max(0, Math.floor(limit - (thenUntilFullMs - toleranceMs) / costMs)),
      resetSeconds: Math.ceil(thenUntilFullMs / 1000),
      retryAfterSeconds: isAllowed ? 0 : Math.ceil(waitMs / 1000),
    }
  }
}

/** Puts a bucket last; the one that was idle longest makes room. */
function remember(buckets: Map<string, number>, principal: string, fullAtMs: number): void {
  buckets.delete(principal)
  if (buckets.size >= maximumBuckets) buckets.delete(buckets.keys().next().value ?? '')
  buckets.set(principal, fullAtMs)
}
