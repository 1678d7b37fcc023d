import { setTimeout as delay } from 'node:timers/promises'

/** Lets answers wait for a channel to ring. */
export interface LongPolls {
  /** A point in time, to be taken before the function looks whether there is something to do. */
  mark: () => number
  /** Resolves when the channel has rung since the mark, the time is over, or the caller has gone. */
  wait: (channel: string, since: number, timeoutMs: number, gone: AbortSignal) => Promise<void>
  /** Ends the waits of a channel, and those that began to look for work before this moment. */
  ring: (channel: string) => void
  /** How many wait. */
  count: () => number
  /** Ends all waits, now and from now on. */
  releaseAll: () => void
}

/** An answer that is to wait: on which channel, and how long at most. */
export interface LongPoll {
  channel: string
  timeoutMs: number
}

const longestHoldSeconds = 600

/** Reads the hold that a function asks for, and takes it out of the headers: it is for the gateway only. */
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

/** Keeps, per channel, who waits and when it last rang; the times of the channels that rang longest ago are dropped. */
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

  /** A channel whose ring may have been forgotten counts as rung: one look too many costs little, one too few a wait. */
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
