import { now } from '../clock.ts'
import { platformError } from '../error.ts'
import { type RateLimitState, reportRateLimit } from '../lib/rate-limit-state.ts'
import * as keys from './keys.ts'
import { type Item, tryUpdate, update, upsert, type WriteItem } from './table.ts'

/** Limits that apply across all processes. The table has one item per subject and period, which expires. */

export interface CallLimit {
  subject: string
  limit: number
  periodSeconds: number
  /** The limit covers this number of consecutive periods. */
  periods: number
}

export const perMinute = (subject: string, limit: number): CallLimit => ({
  subject,
  limit,
  periodSeconds: 60,
  periods: 1,
})

/** Any 60 minutes lie within five consecutive quarter-hours, so no hour exceeds the limit. */
export const perHour = (subject: string, limit: number): CallLimit => ({
  subject,
  limit,
  periodSeconds: 900,
  periods: 5,
})

/** A limit with the keys of its counts. `keys` starts with the current period. */
export interface CallCounter extends CallLimit {
  period: number
  keys: readonly keys.Key[]
}

export function counterOf(limit: CallLimit): CallCounter {
  const { subject, periodSeconds, periods } = limit
  const period = Math.floor(now() / 1000 / periodSeconds)
  const ages = Array.from({ length: periods }, (_, age) => age)
  return { ...limit, period, keys: ages.map((age) => keys.callCount(subject, periodSeconds, period - age)) }
}

export const countOf = (item: Item | undefined): number => Number(item?.['count'] ?? 0)

const increment = ({ period, periods, periodSeconds }: CallCounter) => ({
  add: { count: 1 },
  set: { ttl: (period + periods) * periodSeconds + 600 },
})

const currentKey = ({ subject, periodSeconds, period }: CallCounter): keys.Key =>
  keys.callCount(subject, periodSeconds, period)

const isBelow = ({ limit }: CallLimit, earlier = 0) => ({ count: { absentOrAtMost: limit - 1 - earlier } })

/** Counts an allowed call. Throws `rate_limited` beyond the limit, which must cover a single period. */
export async function countAllowedCall(limit: CallLimit): Promise<void> {
  const counter = counterOf(limit)
  const item = await tryUpdate(currentKey(counter), increment(counter), isBelow(limit))
  if (item === undefined) throw limitExceeded(counter)
  reportRateLimit(stateOf(counter, [countOf(item)]))
}

/**
 * Adds calls to the current minute of a subject. Returns the count of all processes, and the seconds until the next
 * minute.
 */
export async function addCalls(subject: string, calls: number): Promise<{ count: number; secondsLeft: number }> {
  const counter = counterOf(perMinute(subject, calls))
  const item = await update(currentKey(counter), { ...increment(counter), add: { count: calls } })
  return { count: countOf(item), secondsLeft: secondsUntilStart(counter, 1) }
}

/**
 * Counts a call in a transaction. The write fails beyond the limit; `earlier` are the counts of the earlier periods.
 */
export const countCallWrite = (counter: CallCounter, earlier: readonly number[] = []): WriteItem =>
  upsert(currentKey(counter), increment(counter), isBelow(counter, sum(earlier)))

/** Changes the count regardless of the limit; -1 undoes `countCallWrite`. */
export const adjustCountWrite = (counter: CallCounter, by: 1 | -1): WriteItem =>
  upsert(currentKey(counter), { ...increment(counter), add: { count: by } })

const sum = (counts: readonly number[]): number => counts.reduce((total, count) => total + count, 0)

export function limitExceeded(counter: CallCounter, counts: readonly number[] = [counter.limit]) {
  const state = stateOf(counter, counts)
  reportRateLimit(state)
  return platformError('rate_limited', { retryAfterSeconds: state.retryAfterSeconds })
}

/** `counts` starts with the current period. */
export function stateOf(counter: CallCounter, counts: readonly number[]): RateLimitState {
  const { limit, periods } = counter
  const used = (startedPeriods: number) => sum(counts.slice(0, periods - startedPeriods))
  const secondsUntil = (isReached: (count: number) => boolean): number => {
    const starts = Array.from({ length: periods + 1 }, (_, index) => index)
    return secondsUntilStart(counter, starts.find((index) => isReached(used(index))) ?? periods)
  }
  return {
    limit,
    remaining: Math.max(0, limit - used(0)),
    resetSeconds: secondsUntil((count) => count === 0),
    retryAfterSeconds: secondsUntil((count) => count < limit),
  }
}

// Bounded, because the clock may have changed since the counter was created.
function secondsUntilStart({ period, periodSeconds }: CallCounter, startedPeriods: number): number {
  if (startedPeriods === 0) return 0
  const seconds = Math.ceil((period + startedPeriods) * periodSeconds - now() / 1000)
  return Math.max(1, Math.min(seconds, startedPeriods * periodSeconds))
}
