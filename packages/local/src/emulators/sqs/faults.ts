import { AwsFault } from '../http/error.ts'
import type { JsonObject } from '../http/request.ts'

/** What goes wrong on purpose. A rate is a share from 0 (never) to 1 (always). */
export interface Faults {
  /** Of the messages received: each is delivered once more, even if the first delivery is deleted. */
  duplicateRate: number
  /** Of the receives: the waiting messages are shuffled first. */
  reorderRate: number
  /** Of the sends: the messages are stored, but the connection breaks instead of an answer. */
  lostAcknowledgementRate: number
  /** Of all calls: refused with `RequestThrottled`. */
  throttleRate: number
  /** Starts the sequence of chances anew, so that a run can be repeated. */
  seed: number
}

/** The switches of a running server. */
export interface FaultSwitches {
  current(): Faults
  /** Changes the named switches; a seed restarts the chances even when it is the same. */
  set(changes: Partial<Faults>): void
  /** Whether the fault happens this time. */
  strikes(rate: Exclude<keyof Faults, 'seed'>): boolean
  /** Shuffles in place. */
  shuffle(items: unknown[]): void
}

const calm: Faults = { duplicateRate: 0, reorderRate: 0, lostAcknowledgementRate: 0, throttleRate: 0, seed: 1 }

export function createFaults(initial: Partial<Faults> = {}): FaultSwitches {
  let faults = calm
  let chance = chances(calm.seed)
  const set = (changes: Partial<Faults>) => {
    faults = { ...faults, ...changes }
    if (changes.seed !== undefined) chance = chances(changes.seed)
  }
  set(initial)
  return {
    current: () => faults,
    set,
    strikes: (rate) => faults[rate] > 0 && chance() < faults[rate],
    shuffle: (items) => {
      for (let last = items.length - 1; last > 0; last--) {
        const other = Math.floor(chance() * (last + 1))
        ;[items[last], items[other]] = [items[other], items[last]]
      }
    },
  }
}

/** Reads changes that came over HTTP. */
export function parseFaults(input: JsonObject): Partial<Faults> {
  for (const [name, value] of Object.entries(input)) {
    const valid = name === 'seed' ? Number.isInteger(value) : isRate(value)
    if (!Object.hasOwn(calm, name) || !valid) throw new AwsFault('ValidationException', `Bad fault switch: ${name}.`)
  }
  return input
}

const isRate = (value: unknown) => typeof value === 'number' && value >= 0 && value <= 1

/** A small generator (a Weyl sequence through a mixing function); its quality suffices for choosing faults. */
function chances(seed: number): () => number {
  let state = seed | 0
  return () => {
    state = (state + 0x9e3779b9) | 0
    let mixed = Math.imul(state ^ (state >>> 16), 0x85ebca6b)
    mixed = Math.imul(mixed ^ (mixed >>> 13), 0xc2b2ae35)
    return ((mixed ^ (mixed >>> 16)) >>> 0) / 2 ** 32
  }
}
