import type { Answer } from '../../conformance/support/answer.ts'
import type { Promised as PromisedBefore } from '../../support/load.ts'

/** A batch that was accepted. */
export interface PromisedBatch {
  id: string
  jobIds: string[]
  /** What its jobs print, in their order. */
  lines: string[]
  /** Reads as whoever has submitted it. */
  read: (path: string) => Promise<Answer>
}

/** What the platform has promised to the clients of a load: everything that it answered with success. */
export interface Promised extends PromisedBefore {
  /** Batches for the relay that runs scripts. */
  batches: PromisedBatch[]
  /** Jobs that a relay of ours has claimed, and whose end was taken note of. */
  completed: Set<string>
  users: Set<string>
  /** Users that were removed. */
  removed: Set<string>
}

export const nothingPromised = (): Promised => ({
  clusters: [],
  worked: new Map(),
  parked: new Set(),
  cancelled: new Set(),
  batches: [],
  completed: new Set(),
  users: new Set(),
  removed: new Set(),
})
