import { now, nowSeconds } from '../clock.ts'
import * as keys from '../db/keys.ts'
import { query, update } from '../db/table.ts'
import { log } from '../log.ts'
import { version } from '../lib/version.ts'

/** How often each version of the platform fails unexpectedly: what an update of it is judged by (D51). */

const minuteMs = 60_000
const betweenMs = 1000
const keptSeconds = 3600

/** Failures that no write has carried yet. */
let waiting = 0
let writtenAtMs = -Infinity
let nextWrite: NodeJS.Timeout | undefined

/**
 * Counts an unexpected failure against the version that runs here. Never throws, and takes as long as the store does at
 * most. One call in a second, however many failures there are.
 */
export async function countVersionError(): Promise<void> {
  waiting++
  const pauseMs = writtenAtMs + betweenMs - now()
  if (pauseMs <= 0) return write()
  // Where the process is frozen until its next call, what waits is written then.
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

/** How often a version has failed since then, the whole of that minute included; counts may be a second late. One call. */
export async function versionErrorsSince(ofVersion: string, sinceMs: number): Promise<number> {
  const first = keys.versionErrorCount(ofVersion, minuteOf(sinceMs))
  const last = keys.versionErrorCount(ofVersion, minuteOf(now()) + 1)
  const { items } = await query({ pk: first.pk, from: first.sk, to: last.sk })
  return items.reduce((sum, { faults }) => sum + Number(faults), 0)
}
