import * as z from 'zod'
import { parseClusters } from '../jobs/batches/chunks.ts'
import { now } from '../clock.ts'
import { unchanged } from '../db/expression.ts'
import * as keys from '../db/keys.ts'
import { getConsistent, type Item, type WriteItem, upsert } from '../db/table.ts'

/**
 * The gate between accepting batches and removing clusters (D30). A batch names up to 500 clusters, more than a transaction
 * can hold, so one item of the organisation stands for them all: a batch is accepted only if no cluster has gone since the
 * batch's clusters were looked up, and a cluster goes only if no batch was accepted since the open ones were.
 */
const RemovalGuard = z.object({
  /** Grows with every accepted batch, and every removed cluster. */
  version: z.number().default(0),
  removals: z.number().default(0),
  lastRemovalAtMs: z.number().default(0),
  /** Batches that were ever accepted. */
  accepted: z.number().default(0),
  /** Batches whose jobs do not all count at their clusters yet. */
  open: z.instanceof(Set<string>).default(new Set()),
})
export type RemovalGuard = z.infer<typeof RemovalGuard>

export const parseRemovalGuard = (item: Item | undefined): RemovalGuard => RemovalGuard.parse(item ?? {})

/** Beyond any time that a call may take, and any difference between clocks. */
const settledMs = 60_000

/** Whether clusters that were read together with the gate may have gone before it was read. */
export const isGuardCurrent = ({ lastRemovalAtMs }: RemovalGuard): boolean => lastRemovalAtMs + settledMs < now()

/** The step that opens a batch; refused where a cluster has gone since the gate was read. */
export const openBatchWrite = (organisationId: string, { removals }: RemovalGuard, batchId: string): WriteItem =>
  upsert(
    keys.removalGuard(organisationId),
    { add: { version: 1, accepted: 1, open: new Set([batchId]) } },
    { removals: unchanged(removals || undefined) },
  )

/** The step that closes a batch: its jobs count at their clusters now. */
export const closeBatchWrite = (organisationId: string, batchId: string): WriteItem =>
  upsert(keys.removalGuard(organisationId), { drop: { open: new Set([batchId]) } })

/** The step that counts the removal of a cluster; refused where a batch was accepted since the gate was read. */
export const countRemovalWrite = (organisationId: string, { version }: RemovalGuard): WriteItem =>
  upsert(
    keys.removalGuard(organisationId),
    { add: { version: 1, removals: 1 }, set: { lastRemovalAtMs: now() } },
    { version: unchanged(version || undefined) },
  )

/** Whether an open batch names a cluster. One call per 100 open batches. */
export async function isUsedByOpenBatch(
  organisationId: string,
  { open }: RemovalGuard,
  clusterId: string,
): Promise<boolean> {
  const batchIds = [...open]
  for (let from = 0; from < batchIds.length; from += 100) {
    const items = await getConsistent(
      batchIds.slice(from, from + 100).map((id) => keys.batchClusters(organisationId, id)),
    )
    if (items.some((item) => item !== undefined && parseClusters(item).includes(clusterId))) return true
  }
  return false
}
