import type { ApiResponse } from '../../conformance/support/answer.ts'

export interface AcceptedBatch {
  id: string
  jobIds: string[]
  lines: string[]
  read: (path: string) => Promise<ApiResponse>
}

/** The changes that the platform has acknowledged. None of them may be lost or repeated. */
export const newAcknowledged = () => ({
  clusters: [] as { id: string; name: string }[],
  /** Line of the ledger → job that prints it. */
  executed: new Map<string, string>(),
  /** Jobs for a cluster without a relay. */
  undelivered: new Set<string>(),
  cancelled: new Set<string>(),
  batches: [] as AcceptedBatch[],
  completed: new Set<string>(),
  users: new Set<string>(),
  removedUsers: new Set<string>(),
})
export type Acknowledged = ReturnType<typeof newAcknowledged>

export const newClientStats = () => ({
  calls: 0,
  decidedAtFirstTry: 0,
  responses: 0,
  /** Calls without a decision after all retries. */
  abandoned: [] as string[],
  serverErrors: [] as string[],
  /** Responses that violate the contract, for example 503 without `Retry-After`. */
  violations: [] as string[],
  connectionErrors: [] as string[],
  unexpected: [] as string[],
  lastUndecidedAtMs: 0,
  /** The longest time until a decision. */
  longestMs: 0,
})
export type ClientStats = ReturnType<typeof newClientStats>
