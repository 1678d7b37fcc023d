import * as z from 'zod'
import { now } from '../clock.ts'
import { unchangedCondition } from '../db/expression.ts'
import * as keys from '../db/keys.ts'
import { getConsistent, type Item, type WriteItem, upsert } from '../db/table.ts'
import { decompress } from '../lib/compression.ts'

/**
 * Prevents the removal of a cluster that a concurrently accepted batch names. A batch may name more clusters than a
 * transaction can check, so both write one item of the organisation: a batch fails if a cluster was removed since the
 * lookup, and a removal fails if a batch was accepted since the open batches were read.
 */
const RemovalGuard = z.object({
  version: z.number().default(0),
  removals: z.number().default(0),
  lastRemovalAtMs: z.number().default(0),
  accepted: z.number().default(0),
  /** Ids of the batches whose jobs are not all stored yet. */
  open: z.instanceof(Set<string>).default(new Set()),
})
export type RemovalGuard = z.infer<typeof RemovalGuard>

export const parseRemovalGuard = (item: Item | undefined): RemovalGuard => RemovalGuard.parse(item ?? {})

/** A read that started before a removal ends within this time, including clock skew. */
const staleReadMs = 60_000

/** If true, a cluster that was read together with the guard has not been removed. */
export const isGuardCurrent = ({ lastRemovalAtMs }: RemovalGuard): boolean => lastRemovalAtMs + staleReadMs < now()

/** The write fails if a cluster was removed since the guard was read. */
export const openBatchWrite = (organisationId: string, { removals }: RemovalGuard, batchId: string): WriteItem =>
  upsert(
    keys.removalGuard(organisationId),
    { add: { version: 1, accepted: 1, open: new Set([batchId]) } },
    { removals: unchangedCondition(removals || undefined) },
  )

/** Only for use after all jobs of the batch are stored and counted. */
export const closeBatchWrite = (organisationId: string, batchId: string): WriteItem =>
  upsert(keys.removalGuard(organisationId), { drop: { open: new Set([batchId]) } })

/** The write fails if a batch was accepted or another cluster was removed since the guard was read. */
export const countRemovalWrite = (organisationId: string, { version }: RemovalGuard): WriteItem =>
  upsert(
    keys.removalGuard(organisationId),
    { add: { version: 1, removals: 1 }, set: { lastRemovalAtMs: now() } },
    { version: unchangedCondition(version || undefined) },
  )

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
    if (items.some((item) => item !== undefined && parseClusterIds(item).includes(clusterId))) return true
  }
  return false
}

export const parseClusterIds = (item: Item): string[] => decompress(item['clusters']).split('\n')
