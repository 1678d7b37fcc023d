import { elapsedMs, now, nowSeconds } from '../clock.ts'
import * as keys from '../db/keys.ts'
import { query, update } from '../db/table.ts'
import { log } from '../log.ts'
import { version } from '../lib/version.ts'

/** Counts unexpected errors per platform version, for the error budget of an update. */

const minuteMs = 60_000
const writeIntervalMs = 1000
const retentionSeconds = 3600

let unwrittenCount = 0
let writtenAtMs = -Infinity
let nextWrite: NodeJS.Timeout | undefined

/** Never throws. Waits for one write at most. */
export async function countVersionError(): Promise<void> {
  unwrittenCount++
  const delayMs = writtenAtMs + writeIntervalMs - elapsedMs()
  if (delayMs <= 0) return write()
  // If the process is frozen between requests, the next request writes the remaining errors.
  nextWrite ??= setTimeout(() => void write(), Math.min(delayMs, writeIntervalMs)).unref()
  return undefined
}

async function write(): Promise<void> {
  clearTimeout(nextWrite)
  nextWrite = undefined
  const count = unwrittenCount
  unwrittenCount = 0
  writtenAtMs = elapsedMs()
  try {
    const key = keys.versionErrorCount(version, minuteOf(now()))
    await update(key, { add: { faults: count }, set: { ttl: nowSeconds() + retentionSeconds } })
  } catch (cause) {
    unwrittenCount += count
    log('debug', 'Failed to count errors', { cause })
  }
}

const minuteOf = (ms: number): number => Math.floor(ms / minuteMs)

/** Counts from the start of the minute of `sinceMs`. The count may lag by a second. */
export async function versionErrorsSince(releaseVersion: string, sinceMs: number): Promise<number> {
  const firstKey = keys.versionErrorCount(releaseVersion, minuteOf(sinceMs))
  const lastKey = keys.versionErrorCount(releaseVersion, minuteOf(now()) + 1)
  const { items } = await query({ pk: firstKey.pk, from: firstKey.sk, to: lastKey.sk })
  return items.reduce((sum, { faults }) => sum + Number(faults), 0)
}
