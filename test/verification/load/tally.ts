/** What was seen of a load: every call of its clients, and what came of it. */
export interface Tally {
  /** Calls as a client's user means them, however often they were sent. */
  calls: number
  /** Of these, those that the platform decided at the first try. */
  decidedAtOnce: number
  /** Of these, those that it has not decided by the time that the client gave up. */
  givenUp: string[]
  /** Answers in all. */
  answers: number
  /** Answers with 500. */
  faults: string[]
  /** Answers that are not as the contract says, a 503 without `Retry-After` among them. */
  violations: string[]
  /** Calls that nobody answered, or whose answer was cut off. */
  unanswered: string[]
  /** Decisions that nothing was the reason for. */
  surprises: string[]
  /** When the platform last left a try undecided, by `performance.now()`. */
  lastUndecidedAtMs: number
}

export const newTally = (): Tally => ({
  calls: 0,
  decidedAtOnce: 0,
  givenUp: [],
  answers: 0,
  faults: [],
  violations: [],
  unanswered: [],
  surprises: [],
  lastUndecidedAtMs: 0,
})

/** The share of calls, in per cent. */
export const percent = (part: number, whole: number): number => (whole === 0 ? 100 : (100 * part) / whole)
