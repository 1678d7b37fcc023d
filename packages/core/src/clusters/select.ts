import {
  type ClusterStatus,
  clusterStatuses,
  type ClusterType,
  labelListLimits,
  type LabelList,
  recordSortLimit,
} from '@platform/contract/cluster'
import type { Labels } from '@platform/contract/label'
import { matchesSelector, parseSelector, type Selector } from '@platform/contract/selector'
import type { Caller } from '../caller.ts'
import { indexedKeys } from '../db/index-page.ts'
import * as keys from '../db/keys.ts'
import { get, getMany, type Item, query, queryAll, readAll } from '../db/table.ts'
import { observe } from './downtime.ts'
import { parseLabels } from '../labels/labels.ts'
import { type ClusterRecord, currentStatus, parseCluster } from './record.ts'

/**
 * Up to this number of clusters, a filter reads all records and is exact. Beyond it, a filter uses indexes, which
 * contain the status that a heartbeat or sweep stored last.
 */
export const exactFilterLimit = 1000
/** Limits a search to about 13 queries, each of which reads about 8,000 names. */
const maxNames = 100_000

/** Reads with `mayBeStale` may lag behind writes, usually by less than a second. */
interface ReadOptions {
  mayBeStale: boolean
}

interface LabelledCluster {
  id: string
  labels: Labels
}

export interface SelectedCluster {
  id: string
  /** Absent if neither the filter nor the caller needs them. */
  labels?: Labels
  /** The case-folded name. Absent if neither the filter nor the caller needs it. */
  name?: string
}

/** Yields the clusters with their labels, newest first. A query returns 1 MB, about 2,400 clusters. */
async function* eachCluster(organisationId: string, { mayBeStale }: ReadOptions): AsyncGenerator<LabelledCluster> {
  const { pk } = keys.clusterLabels(organisationId, '')
  let after: Item | undefined
  do {
    const page = await query({ pk, mayBeStale, isNewestFirst: true, ...(after && { after }) })
    for (const item of page.items) yield { id: String(item['sk']), labels: parseLabels(item) }
    after = page.next
  } while (after !== undefined)
}

export interface SelectionQuery {
  selector?: string | undefined
  status?: ClusterStatus | undefined
  type?: ClusterType | undefined
  /** Case-folded text that the name must contain; empty for no filter. */
  term: string
  /** Values that the result must have, even if the filter does not need them. */
  needs?: 'labels' | 'names' | undefined
}

export interface Selection {
  clusters: SelectedCluster[]
  /** The number of all clusters of the organisation. */
  clusterCount: number
  searchedAll?: boolean
}

/**
 * Selects clusters, newest first. Without `mayBeStale`, the result has every matching cluster that existed before the
 * call. With `mayBeStale`, at most 100,000 names are read; see `searchedAll`. Names are smaller than labels, so labels
 * are read only if they are needed.
 */
export async function select(
  organisationId: string,
  { selector, status, type, term, needs }: SelectionQuery,
  options: ReadOptions,
): Promise<Selection> {
  const needsLabels = selector !== undefined || type !== undefined || needs === 'labels'
  const [byLabels, byNames] = await Promise.all([
    needsLabels ? clustersLabelled(organisationId, { selector, type }, options) : undefined,
    term !== '' || needs === 'names' || !needsLabels ? clustersNamed(organisationId, term, options) : undefined,
  ])
  const clusterCount = byLabels?.clusterCount ?? byNames?.nameCount ?? 0
  let clusters: SelectedCluster[] =
    byLabels === undefined
      ? [...(byNames?.names ?? [])].map(([id, name]) => ({ id, name })).toSorted(newestFirst)
      : byNames === undefined
        ? byLabels.clusters
        : byLabels.clusters.flatMap((cluster) => {
            const name = byNames.names.get(cluster.id)
            return name === undefined ? [] : [{ ...cluster, name }]
          })
  if (status !== undefined && clusters.length > 0) {
    const ids = clusters.map(({ id }) => id)
    const statuses = await statusesOf(organisationId, { ids, clusterCount, statuses: [status] }, options)
    clusters = clusters.filter(({ id }) => statuses.get(id) === status)
  }
  return { clusters, clusterCount, ...(term !== '' && byNames && { searchedAll: byNames.isComplete }) }
}

const newestFirst = (one: SelectedCluster, other: SelectedCluster): number => (one.id < other.id ? 1 : -1)

async function clustersLabelled(
  organisationId: string,
  { selector, type }: Pick<SelectionQuery, 'selector' | 'type'>,
  options: ReadOptions,
): Promise<{ clusters: LabelledCluster[]; clusterCount: number }> {
  const requirements: Selector = selector === undefined ? [] : parseSelector(selector)
  const clusters: LabelledCluster[] = []
  let clusterCount = 0
  for await (const cluster of eachCluster(organisationId, options)) {
    clusterCount++
    const isOfType = type === undefined || cluster.labels['platform/type'] === type
    if (isOfType && matchesSelector(requirements, cluster.labels)) clusters.push(cluster)
  }
  return { clusters, clusterCount }
}

/** Reads the case-folded names of the clusters whose names contain `term`, by id. */
export async function clustersNamed(organisationId: string, term: string, { mayBeStale }: ReadOptions) {
  const { pk } = keys.clusterName(organisationId, '')
  const filter = term === '' ? {} : { filter: { attribute: 'folded', contains: term } }
  const limit = mayBeStale ? maxNames : Infinity
  // One more, to know whether the limit is exceeded.
  const { items, readCount } = await readAll({ pk, mayBeStale, ...filter }, limit + 1)
  return {
    names: new Map(items.map(({ sk, clusterId }) => [String(clusterId), String(sk)])),
    nameCount: readCount,
    isComplete: readCount <= limit,
  }
}

interface ClustersOf {
  ids: readonly string[]
  /** The number of all clusters of the organisation. */
  clusterCount: number
}

/**
 * Returns the statuses of at least those of `ids` whose status is in `statuses`. For many ids in a large organisation, a
 * read that may be stale uses the index.
 */
export async function statusesOf(
  organisationId: string,
  { ids, clusterCount, statuses = clusterStatuses }: ClustersOf & { statuses?: readonly ClusterStatus[] },
  { mayBeStale }: ReadOptions,
): Promise<ReadonlyMap<string, ClusterStatus>> {
  if (mayBeStale && ids.length > recordSortLimit && clusterCount > exactFilterLimit) {
    const statusReads = statuses.map(async (status) => {
      const pk = keys.clusterPartition(organisationId, { status })
      return (await indexedKeys({ index: 'gsi1', pk })).map(({ id }) => [id, status] as const)
    })
    return new Map((await Promise.all(statusReads)).flat())
  }
  const [sweepState, records] = await Promise.all([
    get(keys.sweepState(), { mayBeStale }),
    recordsAmong(organisationId, { ids, clusterCount }, { mayBeStale }),
  ])
  observe(sweepState)
  return new Map(records.map((record) => [record.id, currentStatus(record)]))
}

/** Reads the existing records of at least these clusters with as few calls as possible. */
export async function recordsAmong(
  organisationId: string,
  { ids, clusterCount }: ClustersOf,
  options: ReadOptions,
): Promise<ClusterRecord[]> {
  const clusterKeys = ids.map((id) => keys.cluster(organisationId, id))
  const readsById = Math.ceil(ids.length / 100) <= Math.ceil(clusterCount / 1000)
  const items = readsById
    ? await getMany(clusterKeys, options)
    : await queryAll({ pk: keys.cluster(organisationId, '').pk, ...options })
  return items.filter((item) => item !== undefined).map(parseCluster)
}

export const listLabels = async (
  { organisationId }: Caller,
  { key: onlyKey }: { key?: string | undefined },
): Promise<LabelList> => {
  const counts = new Map<string, Map<string, number>>()
  for await (const { labels } of eachCluster(organisationId, { mayBeStale: true }))
    for (const [key, value] of Object.entries(labels)) {
      if (onlyKey !== undefined && key !== onlyKey) continue
      const values = counts.get(key) ?? new Map<string, number>()
      counts.set(key, values.set(value, (values.get(value) ?? 0) + 1))
    }
  const valueLimit = onlyKey === undefined ? labelListLimits.values : labelListLimits.valuesOfKey
  const labelCounts = [...counts].map(([key, values]) => ({ key, values, clusterCount: sum(values.values()) }))
  const items = labelCounts
    .toSorted((one, other) => other.clusterCount - one.clusterCount || compare(one.key, other.key))
    .slice(0, labelListLimits.keys)
    .map(({ key, values, clusterCount }) => ({
      key,
      clusterCount,
      values: mostFrequent(values).slice(0, valueLimit),
      hasMoreValues: values.size > valueLimit,
    }))
  return { items, hasMoreKeys: labelCounts.length > items.length }
}

const sum = (numbers: Iterable<number>): number => [...numbers].reduce((total, number) => total + number, 0)

const compare = (one: string, other: string): number => (one < other ? -1 : 1)

const mostFrequent = (values: ReadonlyMap<string, number>) =>
  [...values]
    .map(([value, clusterCount]) => ({ value, clusterCount }))
    .toSorted((one, other) => other.clusterCount - one.clusterCount || compare(one.value, other.value))
