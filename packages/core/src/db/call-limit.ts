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
  /** The number of consecutive periods that the limit covers. */
  periodCount: number
}

export const perMinute = (subject: string, limit: number): CallLimit => ({
  subject,
  limit,
  periodSeconds: 60,
  periodCount: 1,
})

/** Any 60 minutes lie within five consecutive quarter-hours, so no hour exceeds the limit. */
export const perHour = (subject: string, limit: number): CallLimit => ({
  subject,
  limit,
  periodSeconds: 900,
  periodCount: 5,
})

/** A limit with the keys of its counts, which start with the current period. */
export interface CallCounter extends CallLimit {
  periodNumber: number
  countKeys: readonly keys.Key[]
}

export function counterOf(limit: CallLimit): CallCounter {
  const { subject, periodSeconds, periodCount } = limit
  const periodNumber = Math.floor(now() / 1000 / periodSeconds)
  const countKeys = Array.from({ length: periodCount }, (_, periodsAgo) =>
    keys.callCount(subject, periodSeconds, periodNumber - periodsAgo),
  )
  return { ...limit, periodNumber, countKeys }
}

export const countOf = (item: Item | undefined): number => Number(item?.['count'] ?? 0)

const incrementChange = ({ periodNumber, periodCount, periodSeconds }: CallCounter) => ({
  add: { count: 1 },
  set: { ttl: (periodNumber + periodCount) * periodSeconds + 600 },
})

const currentKey = ({ subject, periodSeconds, periodNumber }: CallCounter): keys.Key =>
  keys.callCount(subject, periodSeconds, periodNumber)

const belowLimit = ({ limit }: CallLimit, earlierCount = 0) => ({ count: { absentOrAtMost: limit - 1 - earlierCount } })

/** Counts a call. Throws `rate_limited` if the limit is reached. The limit must cover a single period. */
export async function countAllowedCall(limit: CallLimit): Promise<void> {
  const counter = counterOf(limit)
  const item = await tryUpdate(currentKey(counter), incrementChange(counter), belowLimit(limit))
  if (item === undefined) throw limitExceededError(counter)
  reportRateLimit(stateOf(counter, [countOf(item)]))
}

/**
 * Adds calls to the current minute of a subject. Returns the count of all processes, and the seconds until the next
 * minute.
 */
export async function addCalls(subject: string, callCount: number): Promise<{ count: number; secondsLeft: number }> {
  const counter = counterOf(perMinute(subject, callCount))
  const item = await update(currentKey(counter), { ...incrementChange(counter), add: { count: callCount } })
  return { count: countOf(item), secondsLeft: secondsUntilStart(counter, 1) }
}

/**
 * Returns the write that counts a call. The write fails if the limit is reached. `earlierCounts` are the counts of the
 * earlier periods.
 */
export const countCallWrite = (counter: CallCounter, earlierCounts: readonly number[] = []): WriteItem =>
  upsert(currentKey(counter), incrementChange(counter), belowLimit(counter, sum(earlierCounts)))

/** Changes the count regardless of the limit; -1 undoes `countCallWrite`. */
export const adjustCountWrite = (counter: CallCounter, delta: 1 | -1): WriteItem =>
  upsert(currentKey(counter), { ...incrementChange(counter), add: { count: delta } })

const sum = (counts: readonly number[]): number => counts.reduce((total, count) => total + count, 0)

export function limitExceededError(counter: CallCounter, counts: readonly number[] = [counter.limit]) {
  const state = stateOf(counter, counts)
  reportRateLimit(state)
  return platformError('rate_limited', { retryAfterSeconds: state.retryAfterSeconds })
}

/** `counts` starts with the current period. */
export function stateOf(counter: CallCounter, counts: readonly number[]): RateLimitState {
  const { limit, periodCount } = counter
  const usedAfter = (startedPeriodCount: number) => sum(counts.slice(0, periodCount - startedPeriodCount))
  const secondsUntil = (isReached: (count: number) => boolean): number => {
    const starts = Array.from({ length: periodCount + 1 }, (_, index) => index)
    return secondsUntilStart(counter, starts.find((index) => isReached(usedAfter(index))) ?? periodCount)
  }
  return {
    limit,
    remaining: Math.max(0, limit - usedAfter(0)),
    resetSeconds: secondsUntil((count) => count === 0),
    retryAfterSeconds: secondsUntil((count) => count < limit),
  }
}

// The result is bounded, because the clock may have changed since the counter was created.
function secondsUntilStart({ periodNumber, periodSeconds }: CallCounter, startedPeriodCount: number): number {
  if (startedPeriodCount === 0) return 0
  const seconds = Math.ceil((periodNumber + startedPeriodCount) * periodSeconds - now() / 1000)
  return Math.max(1, Math.min(seconds, startedPeriodCount * periodSeconds))
}
