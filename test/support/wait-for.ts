import { AsyncLocalStorage } from 'node:async_hooks'
import { setTimeout as delay } from 'node:timers/promises'

const pollMs = 50

const abortSignal = new AsyncLocalStorage<AbortSignal>()

/** Does work in which nothing is waited for any longer once the signal comes: for whoever knows that waiting is in vain. */
export const abortWaitsOn = <Result>(signal: AbortSignal, work: () => Promise<Result>): Promise<Result> =>
  abortSignal.run(signal, work)

const isAborted = (): boolean => abortSignal.getStore()?.aborted === true

/**
 * Looks again and again until `look` answers something, and answers that. Throws when the time is over: the deadline
 * is generous and says only that waiting on is pointless.
 */
export async function waitFor<Found>(
  what: string,
  check: () => Promise<Found | undefined | false>,
  withinSeconds = 60,
): Promise<Found> {
  const deadlineMs = performance.now() + withinSeconds * 1000
  while (performance.now() < deadlineMs && !isAborted()) {
    const found = await check()
    if (found !== undefined && found !== false) return found
    await delay(pollMs)
  }
  throw new Error(isAborted() ? `Waited in vain: ${what}` : `Waited ${withinSeconds} seconds in vain: ${what}`)
}
