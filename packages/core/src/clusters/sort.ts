import {
  type ClusterSort,
  type ClusterSortField,
  clusterSortFields,
  type ClusterStatus,
  recordSortLimit,
} from '@platform/contract/cluster'
import * as keys from '../db/keys.ts'
import { cutSortText, sortItems } from '../db/order.ts'
import type { Order } from '../db/paging.ts'
import { queryAll } from '../db/table.ts'
import { validationFailedError } from '../error.ts'
import { timeMsOf } from '../id.ts'
import type { ClusterRecord } from './record.ts'
import {
  exactFilterLimit,
  recordsAmong,
  select,
  type SelectedCluster,
  type Selection,
  type SelectionQuery,
  statusesOf,
} from './select.ts'

/**
 * Sorts clusters by a value that their names, labels or indexes have, so that only the records of the page are read.
 * Few clusters can also be sorted by values of their records.
 */

const labelKeys: Partial<Record<ClusterSortField, string>> = {
  type: 'platform/type',
  site: 'platform/site',
  os: 'platform/os',
  arch: 'platform/arch',
  relayVersion: 'platform/relay-version',
}

const statusOrder: readonly ClusterStatus[] = ['Offline', 'Degraded', 'Pending', 'Healthy']

type ValueOf = (cluster: SelectedCluster) => string

export async function sortClusters(
  organisationId: string,
  { sort, ...filter }: Omit<SelectionQuery, 'needs'> & { sort: ClusterSort },
): Promise<Selection & { order: Order<SelectedCluster> }> {
  const field = clusterSortFields.find((each) => sort.replace('-', '') === each) ?? 'registeredAt'
  const needs = labelKeys[field] !== undefined ? 'labels' : field === 'name' ? 'names' : undefined
  const selection = await select(organisationId, { ...filter, needs }, { mayBeStale: true })
  const valueOf = await valuesOf(organisationId, field, selection)
  const { items, order } = sortItems(selection.clusters, { sort, idOf: ({ id }) => id, valueOf })
  return { ...selection, clusters: items, order }
}

async function valuesOf(organisationId: string, field: ClusterSortField, selection: Selection): Promise<ValueOf> {
  const key = labelKeys[field]
  if (field === 'site') {
    const names = await siteNames(organisationId)
    return ({ labels }) => names.get(labels?.['platform/site'] ?? '') ?? ''
  }
  if (key !== undefined) return ({ labels }) => labels?.[key] ?? ''
  if (field === 'name') return ({ name = '' }) => cutSortText(name)
  if (field === 'registeredAt') return ({ id }) => String(timeMsOf(id))
  const { clusters, clusterCount } = selection
  const ids = clusters.map(({ id }) => id)
  if (field === 'status') {
    const statuses = await statusesOf(organisationId, { ids, clusterCount }, { mayBeStale: true })
    return ({ id }) => String(statusOrder.findIndex((status) => status === (statuses.get(id) ?? 'Healthy')))
  }
  if (clusterCount > exactFilterLimit && ids.length > recordSortLimit) throw tooManyClustersError(field, ids.length)
  const records = await recordsAmong(organisationId, { ids, clusterCount }, { mayBeStale: true })
  const byId = new Map(records.map((record) => [record.id, record]))
  return ({ id }) => recordValue(byId.get(id), field)
}

function recordValue(record: ClusterRecord | undefined, field: ClusterSortField): string {
  if (record === undefined) return ''
  if (field === 'nodeCount') return String(record.nodeCount)
  return record.lastSeenAtMs === 0 ? '' : String(Math.max(record.lastSeenAtMs, record.channelClosedAtMs ?? 0))
}

const tooManyClustersError = (field: ClusterSortField, count: number) =>
  validationFailedError([
    {
      in: 'query',
      path: '/sort',
      code: 'too_many_clusters',
      message: `by ${field} accepts at most ${recordSortLimit} matching clusters, and ${count} match. Add a filter, such as status or selector`,
    },
  ])

async function siteNames(organisationId: string): Promise<ReadonlyMap<string, string>> {
  const items = await queryAll({ pk: keys.site(organisationId, '').pk, mayBeStale: true })
  return new Map(items.map(({ sk, name }) => [String(sk), cutSortText(keys.fold(String(name)))]))
}
