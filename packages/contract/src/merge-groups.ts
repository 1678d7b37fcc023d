import type { JobGroup } from './job-group.ts'

/** Maximum number of clusters that a group lists. */
export const listedClusterLimit = 100

type OrderedGroup = Pick<JobGroup, 'key' | 'status' | 'count'>

const order: Record<JobGroup['status'], number> = { Failed: 0, Cancelled: 1, Completed: 2 }

/** Orders groups by status (Failed, Cancelled, Completed), then by size (largest first), then by key. */
export const compareGroups = (one: OrderedGroup, other: OrderedGroup): number =>
  order[one.status] - order[other.status] || other.count - one.count || (one.key < other.key ? -1 : 1)

/** Merges the groups of several batches, such as those that one submission created. Equal results have equal keys. */
export function mergeGroups<Group extends OrderedGroup & Pick<JobGroup, 'clusterIds'>>(
  parts: readonly { groups: readonly Group[]; pending: number }[],
): { groups: Group[]; pending: number } {
  const byKey = Map.groupBy(
    parts.flatMap(({ groups }) => groups),
    ({ key }) => key,
  )
  const mergedGroups = [...byKey.values()].map((equalGroups) =>
    equalGroups.reduce((sum, group) => ({
      ...group,
      ...sum,
      count: sum.count + group.count,
      clusterIds: [...new Set([...sum.clusterIds, ...group.clusterIds])].slice(0, listedClusterLimit),
    })),
  )
  return { groups: mergedGroups.toSorted(compareGroups), pending: parts.reduce((sum, { pending }) => sum + pending, 0) }
}
