import { setTimeout as sleep } from 'node:timers/promises'
import { type RelayResponse, RetryableError } from './http.ts'

const firstDelayMs = 500
const maxDelayMs = 15_000

/**
 * Returns a random delay in milliseconds, so that relays do not reconnect at the same time (full jitter). Its upper
 * bound doubles with each attempt, up to 15 s.
 */
export function backOffMs(attempt: number): number {
  return randomMs(Math.min(maxDelayMs, firstDelayMs * 2 ** attempt))
}

/** Returns a random time up to the limit, so that relays do not act at the same time. */
export function randomMs(limitMs: number): number {
  return Math.random() * limitMs
}

/** Returns a random time from 97 to 107 % of the period, so that the heartbeats of relays do not align. */
export function jitterMs(periodMs: number): number {
  return periodMs * (0.97 + randomMs(0.1))
}

/** Returns the delay before the next attempt: the server's `Retry-After`, if any, plus the back-off; at most 15 s. */
export function retryDelayMs(attempt: number, cause: RetryableError): number {
  return Math.min(maxDelayMs, cause.afterMs + backOffMs(attempt))
}

/** Repeats `attempt` while it throws `RetryableError`, and calls `onFailure` each time. Throws if the signal aborts. */
export async function retryUntilDecision(
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
      await sleep(retryDelayMs(count, error), undefined, { signal })
    }
  }
}
