import * as z from 'zod'
import { parseClusters } from '../jobs/batches/chunks.ts'
import { now } from '../clock.ts'
import { sameAs } from '../db/expression.ts'
import * as keys from '../db/keys.ts'
import { getAll, type Item, type Step, upsert } from '../db/table.ts'

/**
 * The gate between accepting batches and removing clusters (D30). A batch names up to 500 clusters, more than a transaction
 * can hold, so one item of the organisation stands for them all: a batch is accepted only if no cluster has gone since the
 * batch's clusters were looked up, and a cluster goes only if no batch was accepted since the open ones were.
 */
const Gate = z.object({
  /** Grows with every accepted batch, and every removed cluster. */
  version: z.number().default(0),
  removals: z.number().default(0),
  lastRemovalAtMs: z.number().default(0),
  /** Batches that were ever accepted. */
  accepted: z.number().default(0),
  /** Batches whose jobs do not all count at their clusters yet. */
  open: z.instanceof(Set<string>).default(new Set()),
})
export type Gate = z.infer<typeof Gate>

export const parseGate = (item: Item | undefined): Gate => Gate.parse(item ?? {})

/** Beyond any time that a call may take, and any difference between clocks. */
const settledMs = 60_000

/** Whether clusters that were read together with the gate may have gone before it was read. */
export const isSettled = ({ lastRemovalAtMs }: Gate): boolean => lastRemovalAtMs + settledMs < now()

/** The step that opens a batch; refused where a cluster has gone since the gate was read. */
export const openStep = (organisationId: string, { removals }: Gate, batchId: string): Step =>
  upsert(
    keys.openBatches(organisationId),
    { add: { version: 1, accepted: 1, open: new Set([batchId]) } },
    { removals: sameAs(removals || undefined) },
  )

/** The step that closes a batch: its jobs count at their clusters now. */
export const closeStep = (organisationId: string, batchId: string): Step =>
  upsert(keys.openBatches(organisationId), { drop: { open: new Set([batchId]) } })

/** The step that counts the removal of a cluster; refused where a batch was accepted since the gate was read. */
export const removalStep = (organisationId: string, { version }: Gate): Step =>
  upsert(
    keys.openBatches(organisationId),
    { add: { version: 1, removals: 1 }, set: { lastRemovalAtMs: now() } },
    { version: sameAs(version || undefined) },
  )

/** Whether an open batch names a cluster. One call per 100 open batches. */
export async function isNamed(organisationId: string, { open }: Gate, clusterId: string): Promise<boolean> {
  const batchIds = [...open]
  for (let from = 0; from < batchIds.length; from += 100) {
    const items = await getAll(batchIds.slice(from, from + 100).map((id) => keys.batchClusters(organisationId, id)))
    if (items.some((item) => item !== undefined && parseClusters(item).includes(clusterId))) return true
  }
  return false
}
