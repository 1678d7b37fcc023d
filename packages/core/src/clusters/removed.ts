import * as keys from '../db/keys.ts'
import { type Item, orThrow, remove, upsert, type WriteItem } from '../db/table.ts'
import { PlatformError } from '../error.ts'

/**
 * The sweep purges the jobs of a removed cluster. Until then, one item of the organisation names the cluster, so that
 * reads of its jobs can hide them without a further call.
 */

/** Limits the size of the item. */
const maxUnpurged = 4000

const tooManyRemovals = new PlatformError(
  'rate_limited',
  `The jobs of ${maxUnpurged} removed clusters are still being deleted. Wait a minute and try again.`,
  { retryAfterSeconds: 60 },
)

export const removedWrite = (organisationId: string, clusterId: string): WriteItem =>
  orThrow(
    upsert(
      keys.removedClusters(organisationId),
      { add: { ids: new Set([clusterId]), count: 1 } },
      { count: { absentOrAtMost: maxUnpurged - 1 } },
    ),
    tooManyRemovals,
  )

/**
 * Removes the purge marker, and the cluster from the item of removed clusters. The writes fail if the marker does not
 * exist, so that the count stays correct.
 */
export const purgedWrites = (organisationId: string, clusterId: string): WriteItem[] => [
  remove(keys.clusterPurge(clusterId), { pk: { present: true } }),
  upsert(keys.removedClusters(organisationId), { drop: { ids: new Set([clusterId]) }, add: { count: -1 } }),
]

export const parseRemovedIds = (item: Item | undefined): ReadonlySet<unknown> =>
  item?.['ids'] instanceof Set ? item['ids'] : new Set()

/** The totals include the jobs of removed clusters, which are also counted separately. */
export const hiddenCountName = (status: string): string => `hidden ${status}`

/**
 * Returns the write that counts the jobs of a removed cluster as hidden, if it has any. The projection of their purge
 * subtracts them again.
 */
export function hiddenWrites(organisationId: string, byStatus: Readonly<Record<string, number>>): WriteItem[] {
  const counts = Object.entries(byStatus).filter(([, count]) => count > 0)
  if (counts.length === 0) return []
  const total = counts.reduce((sum, [, count]) => sum + count, 0)
  const add = Object.fromEntries(
    [['total', total] as const, ...counts].map(([name, count]) => [hiddenCountName(name), count]),
  )
  return [upsert(keys.organisationCounts(organisationId), { add })]
}
