import { setTimeout as delay } from 'node:timers/promises'

/** Holds responses until their channel is notified. */
export interface LongPolls {
  /** Position in the sequence of notifications. Read it before the function checks for work. */
  cursor: () => number
  /** Resolves when the channel is notified after `since`, at the timeout, or when the caller disconnects. */
  wait: (channel: string, since: number, timeoutMs: number, disconnected: AbortSignal) => Promise<void>
  /** Ends the waits of a channel, including later ones with an earlier cursor. */
  notify: (channel: string) => void
  count: () => number
  /** Ends all waits, and prevents new ones. */
  releaseAll: () => void
}

export interface LongPoll {
  channel: string
  timeoutMs: number
}

const maximumTimeoutSeconds = 600

/**
 * Returns the long poll that the headers request, if any. Removes these headers, because they are only for the gateway.
 */
export function longPollOf(headers: Map<string, string | string[]>): LongPoll | undefined {
  const [kind, channel, timeout] = ['grip-hold', 'grip-channel', 'grip-timeout'].map((name) => {
    const value = headers.get(name)
    headers.delete(name)
    return typeof value === 'string' ? value : undefined
  })
  const seconds = Number(timeout ?? Number.NaN)
  if (kind !== 'response' || channel === undefined || !(seconds >= 0)) return undefined
  return { channel, timeoutMs: Math.min(seconds, maximumTimeoutSeconds) * 1000 }
}

const maxRememberedChannels = 10_000

/** Forgets the oldest notifications beyond the limit. */
export function createLongPolls(): LongPolls {
  const waits = new Map<string, Set<AbortController>>()
  /** Channel → position of its last notification. */
  const lastByChannel = new Map<string, number>()
  let last = 0
  let lastDropped = 0
  let released = false

  const remember = (channel: string) => {
    lastByChannel.delete(channel)
    lastByChannel.set(channel, ++last)
    const [oldest] = lastByChannel
    if (lastByChannel.size <= maxRememberedChannels || oldest === undefined) return
    lastByChannel.delete(oldest[0])
    lastDropped = oldest[1]
  }

  /** A channel with a forgotten notification counts as notified: an extra check costs less than a missed one. */
  const isNotifiedSince = (channel: string, cursor: number) => (lastByChannel.get(channel) ?? lastDropped) > cursor

  return {
    cursor: () => last,
    wait: async (channel, since, timeoutMs, disconnected) => {
      if (released || isNotifiedSince(channel, since)) return
      const notified = new AbortController()
      const ofChannel = waits.get(channel) ?? new Set()
      waits.set(channel, ofChannel.add(notified))
      await delay(timeoutMs, undefined, { signal: AbortSignal.any([notified.signal, disconnected]) }).catch(
        () => undefined,
      )
      ofChannel.delete(notified)
      if (ofChannel.size === 0) waits.delete(channel)
    },
    notify: (channel) => {
      remember(channel)
      for (const wait of waits.get(channel) ?? []) wait.abort()
    },
    count: () => [...waits.values()].reduce((sum, { size }) => sum + size, 0),
    releaseAll: () => {
      released = true
      for (const ofChannel of waits.values()) for (const wait of ofChannel) wait.abort()
    },
  }
}
