import { AsyncLocalStorage } from 'node:async_hooks'
import { setTimeout as delay } from 'node:timers/promises'

const pollMs = 50

const hope = new AsyncLocalStorage<AbortSignal>()

/** Does work in which nothing is waited for any longer once the signal comes: for whoever knows that waiting is in vain. */
export const whileHope = <Result>(signal: AbortSignal, work: () => Promise<Result>): Promise<Result> =>
  hope.run(signal, work)

const isInVain = (): boolean => hope.getStore()?.aborted === true

/**
 * Looks again and again until `look` answers something, and answers that. Throws when the time is over: the deadline
 * is generous and says only that waiting on is pointless.
 */
export async function until<Found>(
  what: string,
  look: () => Promise<Found | undefined | false>,
  withinSeconds = 60,
): Promise<Found> {
  const deadlineMs = performance.now() + withinSeconds * 1000
  while (performance.now() < deadlineMs && !isInVain()) {
    const found = await look()
    if (found !== undefined && found !== false) return found
    await delay(pollMs)
  }
  throw new Error(isInVain() ? `Waited in vain: ${what}` : `Waited ${withinSeconds} seconds in vain: ${what}`)
}
