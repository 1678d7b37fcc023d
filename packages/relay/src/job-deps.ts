import type { KeyObject } from 'node:crypto'
import type { Client } from './client.ts'
import type { ServerClock } from './clock.ts'
import type { Journal } from './journal.ts'
import type { RelayNode } from './node.ts'
import type { Spool } from './spool.ts'

/** What every job of a relay shares. */
export type JobDeps = {
  client: Client
  clock: ServerClock
  journal: Journal
  spool: Spool
  clusterId: string
  statementKeys: ReadonlyMap<string, KeyObject>
  nodes: RelayNode[]
  /** Aborts when the relay has no more time to report anything. */
  signal: AbortSignal
}
