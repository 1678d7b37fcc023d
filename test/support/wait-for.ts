import { connect, type NetConnectOpts } from 'node:net'
import { setTimeout as delay } from 'node:timers/promises'

const pollMs = 50

/** Repeats a check until its result is neither undefined nor false. Throws after `withinSeconds`. */
export async function waitFor<Found>(
  description: string,
  check: () => Promise<Found | undefined | false>,
  withinSeconds = 60,
): Promise<Found> {
  const deadlineMs = performance.now() + withinSeconds * 1000
  while (performance.now() < deadlineMs) {
    const found = await check()
    if (found !== undefined && found !== false) return found
    await delay(pollMs)
  }
  throw new Error(`Waited ${withinSeconds} seconds for: ${description}`)
}

export const isListening = (address: NetConnectOpts): Promise<boolean> =>
  new Promise((resolve) => {
    const socket = connect(address, () => resolve(true))
    socket.on('connect', () => socket.end()).on('error', () => resolve(false))
  })
