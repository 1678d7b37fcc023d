import { setTimeout as delay } from 'node:timers/promises'

const pollMs = 50

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
  while (performance.now() < deadlineMs) {
    const found = await look()
    if (found !== undefined && found !== false) return found
    await delay(pollMs)
  }
  throw new Error(`Waited ${withinSeconds} seconds in vain: ${what}`)
}
