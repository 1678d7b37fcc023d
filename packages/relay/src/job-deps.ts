import type { Client } from './client.ts'
import type { ServerClock } from './clock.ts'
import type { Completions } from './completions.ts'
import type { Journal } from './journal.ts'
import type { RelayNode } from './node.ts'
import type { Spool } from './spool.ts'
import type { StatementKeys } from './statement-keys.ts'

export type JobDeps = {
  client: Client
  completions: Completions
  clock: ServerClock
  journal: Journal
  spool: Spool
  clusterId: string
  statementKeys: StatementKeys
  nodes: RelayNode[]
  /** Whether the server accepts output in the report of a result, according to its last response to a heartbeat. */
  server: { acceptsLastOutput: boolean }
  /** Aborts when the relay stops reporting results, for example after a revocation or at the end of a shutdown. */
  signal: AbortSignal
}
