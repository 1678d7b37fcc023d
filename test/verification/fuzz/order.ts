import type { Tally } from './run.ts'

/** What a process of the fuzz has to do. */
export interface Order {
  /** Operations, as `POST /api/v1/jobs`. */
  names: readonly string[]
  /** Malformed requests to each. */
  count: number
  /** The same before the memory is looked at. */
  warmUp: number
  seed: number
  /** Where the files are that functions hand out. */
  assetsDir: string
}

/** What it has seen. */
export interface Outcome {
  tally: Tally
  /** Malformed requests by operation; where it has nothing that could be malformed, odd ones. */
  counts: Record<string, number>
  /** Resident memory, after the garbage is collected. */
  grownMb: number
  /** Rows of the store that hold what requests have planted. */
  planted: number
}
