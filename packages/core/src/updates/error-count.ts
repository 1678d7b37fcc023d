import { now, nowSeconds } from '../clock.ts'
import * as keys from '../db/keys.ts'
import { query, update } from '../db/table.ts'
import { log } from '../log.ts'
import { version } from '../lib/version.ts'

/** Unexpected errors per platform version: the error budget of an update. */

const minuteMs = 60_000
const betweenMs = 1000
const keptSeconds = 3600

/** Errors not written yet. */
let waiting = 0
let writtenAtMs = -Infinity
let nextWrite: NodeJS.Timeout | undefined

/**
 * Counts an unexpected error of the running version. Never throws, and waits at most for one store call. One call per
 * second.
 */
export async function countVersionError(): Promise<void> {
  waiting++
  const pauseMs = writtenAtMs + betweenMs - now()
  if (pauseMs <= 0) return write()
  // If the process is frozen between calls, the rest is written in the next one.
  nextWrite ??= setTimeout(() => void write(), Math.min(pauseMs, betweenMs)).unref()
  return undefined
}

async function write(): Promise<void> {
  clearTimeout(nextWrite)
  nextWrite = undefined
  const faults = waiting
  waiting = 0
  writtenAtMs = now()
  try {
    const key = keys.versionErrorCount(version, minuteOf(writtenAtMs))
    await update(key, { add: { faults }, set: { ttl: nowSeconds() + keptSeconds } })
  } catch (cause) {
    waiting += faults
    log('debug', 'Failures could not be counted', { cause })
  }
}

const minuteOf = (ms: number): number => Math.floor(ms / minuteMs)

/** Errors of a version since a time, including that whole minute; counts may lag a second. One call. */
export async function versionErrorsSince(ofVersion: string, sinceMs: number): Promise<number> {
  const first = keys.versionErrorCount(ofVersion, minuteOf(sinceMs))
  const last = keys.versionErrorCount(ofVersion, minuteOf(now()) + 1)
  const { items } = await query({ pk: first.pk, from: first.sk, to: last.sk })
  return items.reduce((sum, { faults }) => sum + Number(faults), 0)
}
