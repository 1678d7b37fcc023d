import { queryOptions, useQuery } from '@tanstack/react-query'
import { type ApiError, incompleteError, isApiError } from '../../api/api-error.ts'
import { api, type Schemas, unwrap } from '../../api/client.ts'
import { queries } from '../../api/query.ts'
import { useDebounced } from '../../ui/hooks.ts'
import { fetchExistingIds, sitesQuery } from './cluster-queries.ts'
import type { KnownLabel } from './selector-completions.ts'
import { noClusters } from './cluster-filter.ts'

/** Prefix of the keys of all queries that count the clusters of a target. */
const targetsKey = ['targets']

export type Labels = Schemas['ClusterSummary']['labels']
export type Target = Schemas['Target']

// This query reads the labels of all clusters, so it is not repeated while the user types.
const labelsQuery = queryOptions({
  queryKey: ['labels'],
  queryFn: async ({ signal }) => (await unwrap(api.GET('/api/v1/clusters/labels', { signal }))).items,
  staleTime: 60_000,
})

/** Returns the labels of all clusters, for completion. They are loaded when `isNeeded` is true for the first time. */
export function useKnownLabels(isNeeded: boolean): KnownLabel[] {
  const { data: labels = [] } = useQuery({ ...labelsQuery, enabled: isNeeded })
  const { data: sites = [] } = useQuery({ ...sitesQuery, enabled: isNeeded })
  const names = new Map(sites.map(({ id, name }) => [id, name]))
  return labels.map((label) =>
    label.key === 'platform/site'
      ? { ...label, values: label.values.map((each) => ({ ...each, name: names.get(each.value) })) }
      : label,
  )
}

/**
 * Counts the clusters of a target after a pause in typing. The data is undefined until it belongs to the current
 * target. A target of selected clusters is not counted.
 */
export function useResolved(target: Target | undefined) {
  const currentKey = target === undefined || target.clusterIds !== undefined ? '' : JSON.stringify(target)
  const settledKey = useDebounced(currentKey)
  const isSettled = settledKey === currentKey
  const query = useQuery({
    queryKey: [...targetsKey, settledKey],
    enabled: isSettled && settledKey !== '',
    queryFn: ({ signal }) => resolve(JSON.parse(settledKey), signal),
    staleTime: 10_000,
  })
  return isSettled && settledKey !== '' ? query : { ...query, data: undefined, error: null }
}

const resolve = (target: Target, signal?: AbortSignal) =>
  unwrap(api.POST('/api/v1/targets/resolve', { body: { target }, ...(signal && { signal }) }))

interface CountedTarget {
  target: Target
  count: number
}

/** A target without its removed clusters, counted by status. */
export interface ReviewedTarget extends CountedTarget {
  names: readonly string[]
  byStatus: Schemas['ClusterCounts']
  removedCount: number
}

/** Counts the clusters of all shown targets again. */
export const refreshTargets = (): void => void queries.invalidateQueries({ queryKey: targetsKey })

/** Returns the error for a target whose number of clusters has changed, and counts all shown targets again. */
export function targetChangedError(count: unknown, expectedCount: number): ApiError {
  refreshTargets()
  return incompleteError(
    `The target now has ${String(count)} instead of ${expectedCount} clusters. Check it and submit again.`,
  )
}

const maxTargetIds = 10_000

/** Returns a query that counts the clusters of a target by status, before an action on the target starts. */
export const reviewQuery = (target: Target) =>
  queryOptions({
    queryKey: [...targetsKey, 'review', target],
    queryFn: async () => {
      const { clusterIds = [] } = target
      const [firstIds, ...others] = clusterIds.length > maxTargetIds ? partsOf(clusterIds, maxTargetIds) : []
      if (firstIds === undefined) return review(target)
      let reviewedTarget = await review({ clusterIds: firstIds })
      for (const part of others) reviewedTarget = sumOf(reviewedTarget, await review({ clusterIds: part }))
      return reviewedTarget
    },
    staleTime: 0,
    gcTime: 0,
  })

async function review(target: Target, removedCount = 0): Promise<ReviewedTarget> {
  const body = { target, includeStatus: true }
  try {
    const { resolvedCount, names, byStatus = noClusters } = await unwrap(api.POST('/api/v1/targets/resolve', { body }))
    return { target, count: resolvedCount, names, byStatus, removedCount }
  } catch (error) {
    const { clusterIds } = target
    if (clusterIds === undefined || !isApiError(error, 'cluster_forbidden')) throw error
    const existingClusterIds = await fetchExistingIds(clusterIds)
    const rest = clusterIds.filter((id) => existingClusterIds.has(id))
    if (rest.length === 0 || rest.length === clusterIds.length) throw error
    return review({ clusterIds: rest }, removedCount + clusterIds.length - rest.length)
  }
}

const sumOf = (one: ReviewedTarget, other: ReviewedTarget): ReviewedTarget => ({
  target: { clusterIds: [...(one.target.clusterIds ?? []), ...(other.target.clusterIds ?? [])] },
  count: one.count + other.count,
  names: one.names,
  byStatus: {
    Healthy: one.byStatus.Healthy + other.byStatus.Healthy,
    Degraded: one.byStatus.Degraded + other.byStatus.Degraded,
    Pending: one.byStatus.Pending + other.byStatus.Pending,
    Offline: one.byStatus.Offline + other.byStatus.Offline,
  },
  removedCount: one.removedCount + other.removedCount,
})

/** Returns the ids of all clusters of a target. Throws `ApiError` if their number has changed. */
export async function idsOf({ target, count }: CountedTarget): Promise<string[]> {
  if (target.clusterIds !== undefined) return target.clusterIds
  const body = { target, includeIds: true }
  const { clusterIds = [] } = await unwrap(api.POST('/api/v1/targets/resolve', { body }))
  if (clusterIds.length !== count) throw targetChangedError(clusterIds.length, count)
  return clusterIds
}

/** The maximum number of clusters of one batch and of one bulk change. */
export const maxPerRequest = 500

export const partsOf = (clusterIds: readonly string[], size = maxPerRequest): string[][] =>
  Array.from({ length: Math.ceil(clusterIds.length / size) }, (_, index) =>
    clusterIds.slice(index * size, (index + 1) * size),
  )
