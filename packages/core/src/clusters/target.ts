import type { ResolvedTarget, Target, TargetResolution } from '@platform/contract/target'
import type { Caller } from '../caller.ts'
import * as keys from '../db/keys.ts'
import { getConsistent, getMany } from '../db/table.ts'
import { PlatformError, platformError, validationFailedError } from '../error.ts'
import { isId } from '../id.ts'
import { clusterFilter } from './apply-saved-filter.ts'
import { clustersNamed, select, statusesOf } from './select.ts'

/** More clusters than this are looked up in the list of all names, which takes fewer calls. */
const lookupLimit = 100

/**
 * Returns the ids of the clusters, newest first, or in the order of `clusterIds`. Reads are consistent, so every
 * matching cluster that existed before the call is included. Throws `cluster_forbidden` if a listed cluster is not in
 * the organisation.
 */
async function resolveTarget(caller: Caller, target: Target): Promise<string[]> {
  const { organisationId } = caller
  const { clusterIds, selector, savedFilterId } = target
  if (clusterIds !== undefined) return listedClusters(organisationId, new Set(clusterIds))
  if (selector === undefined && savedFilterId === undefined)
    return [...(await allClusters(organisationId)).keys()].toSorted().toReversed()
  const { search = '', ...filter } =
    savedFilterId === undefined ? { selector } : await clusterFilter(caller, savedFilterId)
  const selection = { ...filter, term: keys.fold(search.trim()) }
  return (await select(organisationId, selection, { mayBeStale: false })).clusters.map(({ id }) => id)
}

const allClusters = async (organisationId: string): Promise<ReadonlyMap<string, string>> =>
  (await clustersNamed(organisationId, '', { mayBeStale: false })).names

async function listedClusters(organisationId: string, ids: ReadonlySet<string>): Promise<string[]> {
  const listedIds = [...ids]
  if (!listedIds.every((id) => isId('clus', id))) throw platformError('cluster_forbidden')
  const existingIds =
    listedIds.length > lookupLimit ? await allClusters(organisationId) : await existingAmong(organisationId, listedIds)
  if (!listedIds.every((id) => existingIds.has(id))) throw platformError('cluster_forbidden')
  return listedIds
}

async function existingAmong(organisationId: string, ids: readonly string[]): Promise<Set<string>> {
  const items = await getMany(ids.map((id) => keys.clusterLabels(organisationId, id)))
  return new Set(ids.filter((_, index) => items[index] !== undefined))
}

const maxShownNames = 10

export async function resolve(
  caller: Caller,
  { target, includeIds = false, includeStatus = false }: TargetResolution,
): Promise<ResolvedTarget> {
  const ids = await resolveTarget(caller, target)
  const clusterKeys = ids.slice(0, maxShownNames).map((id) => keys.cluster(caller.organisationId, id))
  const [items, byStatus] = await Promise.all([
    clusterKeys.length === 0 ? [] : getConsistent(clusterKeys),
    includeStatus ? countByStatus(caller.organisationId, ids) : undefined,
  ])
  const names = items.flatMap((item) => (item === undefined ? [] : [String(item['name'])]))
  return { resolvedCount: ids.length, names, ...(includeIds && { clusterIds: ids }), ...(byStatus && { byStatus }) }
}

async function countByStatus(organisationId: string, ids: readonly string[]) {
  const statuses = await statusesOf(organisationId, { ids, clusterCount: Infinity }, { mayBeStale: true })
  const counts = { Healthy: 0, Degraded: 0, Pending: 0, Offline: 0 }
  for (const id of ids) {
    const status = statuses.get(id)
    if (status !== undefined) counts[status]++
  }
  return counts
}

export interface CheckedTarget {
  target: Target
  expectedCount?: number | undefined
  limit: number
}

const maxAttempts = 3

/**
 * Calls `start` with the clusters of a target. If `start` throws `cluster_forbidden` because a cluster was removed,
 * resolves the target again, unless the target lists ids. Makes at most three attempts.
 */
export async function startOnTarget<Result>(
  caller: Caller,
  checkedTarget: CheckedTarget,
  start: (clusterIds: string[]) => Promise<Result>,
): Promise<Result> {
  for (let attempt = 1; ; attempt++) {
    const clusterIds = await resolveTarget(caller, checkedTarget.target)
    checkCount(clusterIds.length, checkedTarget)
    try {
      return await start(clusterIds)
    } catch (error) {
      const isRemoved = error instanceof PlatformError && error.code === 'cluster_forbidden'
      if (!isRemoved || checkedTarget.target.clusterIds !== undefined || attempt === maxAttempts) throw error
    }
  }
}

function checkCount(resolvedCount: number, { expectedCount = resolvedCount, limit }: CheckedTarget): void {
  if (resolvedCount !== expectedCount) throw platformError('target_changed', { resolvedCount })
  if (resolvedCount > limit)
    throw new PlatformError(
      'batch_limit_exceeded',
      `The target has ${resolvedCount} clusters, and a request can have at most ${limit}. Send several requests with clusterIds.`,
      { resolvedCount, limit },
    )
  if (resolvedCount === 0)
    throw validationFailedError([{ in: 'body', path: '/target', code: 'no_clusters', message: 'has no clusters' }])
}
