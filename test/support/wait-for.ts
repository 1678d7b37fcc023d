import { AsyncLocalStorage } from 'node:async_hooks'
import { connect, type NetConnectOpts } from 'node:net'
import { setTimeout as delay } from 'node:timers/promises'

const pollMs = 50

const abortSignal = new AsyncLocalStorage<AbortSignal>()

/** Runs an operation and ends all its waits when the signal aborts. */
export const abortWaitsOn = <Result>(signal: AbortSignal, work: () => Promise<Result>): Promise<Result> =>
  abortSignal.run(signal, work)

const isAborted = (): boolean => abortSignal.getStore()?.aborted === true

/**
 * Repeats a check until it returns a truthy value, and returns that value. Throws after a generous deadline, which is
 * not part of the test.
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
  throw new Error(isAborted() ? `Wait aborted: ${what}` : `Waited ${withinSeconds} seconds in vain: ${what}`)
}

/** Whether a server accepts connections. */
export const isListening = (address: NetConnectOpts): Promise<boolean> =>
  new Promise((resolve) => {
    const socket = connect(address, () => resolve(true))
    socket.on('connect', () => socket.end()).on('error', () => resolve(false))
  })
