import { type ClusterStatus, type ClusterType, labelListLimits, type LabelList } from '@platform/contract/cluster'
import { type Labels } from '@platform/contract/label'
import { matchesSelector, parseSelector, type Selector } from '@platform/contract/selector'
import { type Caller } from '../caller.ts'
import { indexedKeys } from '../db/index-page.ts'
import * as keys from '../db/keys.ts'
import { get, getMany, type Item, query, queryAll } from '../db/table.ts'
import { observe } from './downtime.ts'
import { parseLabels } from '../labels/labels.ts'
import { currentStatus, parseCluster } from './record.ts'

/**
 * Up to this number of clusters, a filter reads all records and is exact. Beyond it, a filter uses indexes, which
 * contain the status that a heartbeat or sweep stored last.
 */
export const exactFilterLimit = 1000
/** Limits a search to about twelve queries, each of which returns about 9,000 names. */
export const nameLimit = 100_000

/** Reads with `stale` may lag behind writes by less than a second. */
interface ReadOptions {
  stale: boolean
}

export interface LabelledCluster {
  id: string
  labels: Labels
}

/** Newest first. A call returns the labels of about 2,000 clusters (1 MB). */
async function* eachCluster(organisationId: string, { stale }: ReadOptions): AsyncGenerator<LabelledCluster> {
  const { pk } = keys.clusterLabels(organisationId, '')
  let after: Item | undefined
  do {
    const page = await query({ pk, stale, newestFirst: true, ...(after && { after }) })
    for (const item of page.items) yield { id: String(item['sk']), labels: parseLabels(item) }
    after = page.next
  } while (after !== undefined)
}

export interface Selection {
  selector?: string | undefined
  status?: ClusterStatus | undefined
  type?: ClusterType | undefined
  /** Part of the folded name. */
  term: string
}

/**
 * Newest first. Without `stale`, the result has every matching cluster that existed before the call. With it, a search
 * covers only the first 100,000 names; see `searchedAll`.
 */
export async function select(
  organisationId: string,
  { selector, status, type, term }: Selection,
  options: ReadOptions,
): Promise<{ selected: LabelledCluster[]; searchedAll?: boolean }> {
  const requirements: Selector = selector === undefined ? [] : parseSelector(selector)
  let selected: LabelledCluster[] = []
  let clusterCount = 0
  for await (const cluster of eachCluster(organisationId, options)) {
    clusterCount++
    const isOfType = type === undefined || cluster.labels['platform/type'] === type
    if (isOfType && matchesSelector(requirements, cluster.labels)) selected.push(cluster)
  }
  const named = term === '' ? undefined : await clustersNamed(organisationId, term, options)
  if (named) selected = selected.filter(({ id }) => named.ids.has(id))
  if (status !== undefined && selected.length > 0) {
    const ids = selected.map(({ id }) => id)
    const withStatus = await clustersWithStatus(organisationId, status, { ...options, ids, clusterCount })
    selected = selected.filter(({ id }) => withStatus.has(id))
  }
  return { selected, ...(named && { searchedAll: named.nameCount < nameLimit }) }
}

export async function clustersNamed(organisationId: string, term: string, { stale }: ReadOptions) {
  const { pk } = keys.clusterName(organisationId, '')
  const names = await queryAll({ pk, stale }, stale ? nameLimit : Infinity)
  const ids = names.flatMap(({ sk, clusterId }) => (String(sk).includes(term) ? [String(clusterId)] : []))
  return { ids: new Set(ids), nameCount: names.length }
}

/** Up to this number of `ids`, their records are read and no index is needed. */
const fewClusters = 100

/** A superset of the clusters among `ids` with this status may be returned. */
async function clustersWithStatus(
  organisationId: string,
  status: ClusterStatus,
  { ids, clusterCount, stale }: ReadOptions & { ids: readonly string[]; clusterCount: number },
): Promise<Set<string>> {
  if (stale && ids.length > fewClusters && clusterCount > exactFilterLimit) {
    const pk = keys.clusterPartition(organisationId, { status })
    return new Set((await indexedKeys({ index: 'gsi1', pk })).map(({ id }) => id))
  }
  const clusterKeys = ids.map((id) => keys.cluster(organisationId, id))
  const [sweepState, items] = await Promise.all([
    get(keys.sweepState(), { stale }),
    ids.length <= fewClusters
      ? getMany(clusterKeys, { stale })
      : queryAll({ pk: keys.cluster(organisationId, '').pk, stale }),
  ])
  observe(sweepState)
  const records = items.filter((item) => item !== undefined).map(parseCluster)
  return new Set(records.filter((record) => currentStatus(record) === status).map(({ id }) => id))
}

export const listLabels = async (
  { organisationId }: Caller,
  { key: onlyKey }: { key?: string | undefined },
): Promise<LabelList> => {
  const counts = new Map<string, Map<string, number>>()
  for await (const { labels } of eachCluster(organisationId, { stale: true }))
    for (const [key, value] of Object.entries(labels)) {
      if (onlyKey !== undefined && key !== onlyKey) continue
      const values = counts.get(key) ?? new Map<string, number>()
      counts.set(key, values.set(value, (values.get(value) ?? 0) + 1))
    }
  const valueLimit = onlyKey === undefined ? labelListLimits.values : labelListLimits.valuesOfKey
  const all = [...counts].map(([key, values]) => ({ key, values, clusterCount: sum(values.values()) }))
  const items = all
    .toSorted((one, other) => other.clusterCount - one.clusterCount || compare(one.key, other.key))
    .slice(0, labelListLimits.keys)
    .map(({ key, values, clusterCount }) => ({
      key,
      clusterCount,
      values: mostFrequent(values).slice(0, valueLimit),
      hasMoreValues: values.size > valueLimit,
    }))
  return { items, hasMoreKeys: all.length > items.length }
}

const sum = (numbers: Iterable<number>): number => [...numbers].reduce((total, number) => total + number, 0)

const compare = (one: string, other: string): number => (one < other ? -1 : 1)

const mostFrequent = (values: ReadonlyMap<string, number>) =>
  [...values]
    .map(([value, clusterCount]) => ({ value, clusterCount }))
    .toSorted((one, other) => other.clusterCount - one.clusterCount || compare(one.value, other.value))
