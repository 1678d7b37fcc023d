import { setTimeout as sleep } from 'node:timers/promises'
import { type RelayResponse, RetryableError } from './http.ts'

const firstMs = 500
const longestMs = 60_000

/** A random pause whose bound doubles with each attempt (full jitter), so that relays do not return in step. */
export function backOffMs(attempt: number): number {
  return Math.random() * Math.min(longestMs, firstMs * 2 ** attempt)
}

/** A little less than this, so that relays do not beat in step. */
export function jitterMs(periodMs: number): number {
  return periodMs * (0.9 + 0.1 * Math.random())
}

/** The pause before the next attempt: what the server asked for, if anything, and the back-off. */
export function retryPauseMs(attempt: number, cause: RetryableError): number {
  return Math.min(longestMs, cause.afterMs + backOffMs(attempt))
}

/** Makes attempts until the server has decided or the signal aborts; `onFailure` hears of each that was in vain. */
export async function retryUntilDecided(
  signal: AbortSignal,
  attempt: () => Promise<RelayResponse>,
  onFailure: (cause: RetryableError) => void = () => {},
): Promise<RelayResponse> {
  for (let count = 0; ; count++) {
    try {
      return await attempt()
    } catch (error) {
      if (!(error instanceof RetryableError)) throw error
      onFailure(error)
      await sleep(retryPauseMs(count, error), undefined, { signal })
    }
  }
}
