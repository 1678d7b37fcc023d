import { setTimeout as delay } from 'node:timers/promises'

/** Holds responses until their channel is notified. */
export interface LongPolls {
  /** A point in time, to be taken before the function checks for work. */
  mark: () => number
  /** Resolves when the channel was notified after the mark, the time is over, or the caller has disconnected. */
  wait: (channel: string, since: number, timeoutMs: number, gone: AbortSignal) => Promise<void>
  /** Ends the waits of a channel, including those with an earlier mark. */
  ring: (channel: string) => void
  /** Number of waits. */
  count: () => number
  /** Ends all waits, and prevents new ones. */
  releaseAll: () => void
}

/** A response to hold: its channel and time limit. */
export interface LongPoll {
  channel: string
  timeoutMs: number
}

const longestHoldSeconds = 600

/** Reads the long poll that a function requests, and removes its headers, which are only for the gateway. */
export function longPollOf(headers: Map<string, string | string[]>): LongPoll | undefined {
  const [hold, channel, timeout] = ['grip-hold', 'grip-channel', 'grip-timeout'].map((name) => {
    const value = headers.get(name)
    headers.delete(name)
    return typeof value === 'string' ? value : undefined
  })
  const seconds = Number(timeout ?? Number.NaN)
  if (hold !== 'response' || channel === undefined || !(seconds >= 0)) return undefined
  return { channel, timeoutMs: Math.min(seconds, longestHoldSeconds) * 1000 }
}

const rememberedChannels = 10_000

/** Keeps the waits and the last notification of each channel; drops the oldest notifications. */
export function createLongPolls(): LongPolls {
  const waiting = new Map<string, Set<AbortController>>()
  const lastRings = new Map<string, number>()
  let rings = 0
  let forgotten = 0
  let released = false

  const remember = (channel: string) => {
    lastRings.delete(channel)
    lastRings.set(channel, ++rings)
    const [oldest] = lastRings
    if (lastRings.size <= rememberedChannels || oldest === undefined) return
    lastRings.delete(oldest[0])
    forgotten = oldest[1]
  }

  /** A channel with a dropped notification counts as notified: an extra check costs less than a missed one. */
  const hasRungSince = (channel: string, mark: number) => (lastRings.get(channel) ?? forgotten) > mark

  return {
    mark: () => rings,
    wait: async (channel, since, timeoutMs, gone) => {
      if (released || hasRungSince(channel, since)) return
      const bell = new AbortController()
      const others = waiting.get(channel) ?? new Set()
      waiting.set(channel, others.add(bell))
      await delay(timeoutMs, undefined, { signal: AbortSignal.any([bell.signal, gone]) }).catch(() => undefined)
      others.delete(bell)
      if (others.size === 0) waiting.delete(channel)
    },
    ring: (channel) => {
      remember(channel)
      for (const bell of waiting.get(channel) ?? []) bell.abort()
    },
    count: () => [...waiting.values()].reduce((sum, bells) => sum + bells.size, 0),
    releaseAll: () => {
      released = true
      for (const bells of waiting.values()) for (const bell of bells) bell.abort()
    },
  }
}
