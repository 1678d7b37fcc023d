import {
  type ClusterStatus,
  clusterStatuses,
  type ClusterSummary,
  type ClusterType,
  clusterTypes,
} from '@platform/contract/cluster'
import { type Caller } from '../caller.ts'
import { type ClusterRecord, parseCluster, currentStatus, summary, statusCountName } from './record.ts'
import * as keys from '../db/keys.ts'
import { getConsistent, type Item } from '../db/table.ts'
import { type Page, pageOfKeys } from '../db/index-page.ts'
import { newestRecords, parseHead, type OffsetList, recordsFrom } from '../db/offset-list.ts'

/** Lists use eventually consistent reads, so they may lag by less than a second. */

export const clustersOf = (organisationId: string): OffsetList => ({
  head: keys.clusterOffsets(organisationId),
  pk: keys.cluster(organisationId, '').pk,
  prefix: 'clus',
})

export interface ClusterQuery {
  status?: ClusterStatus | undefined
  type?: ClusterType | undefined
  search?: string | undefined
  /** At most 100 comma-separated ids. */
  ids?: string | undefined
  page: number
  pageSize: number
}

export interface ClusterPage {
  items: ClusterSummary[]
  totalCount: number
  page: number
  pageSize: number
}

/**
 * Up to this number of clusters, a filter reads all records and is exact. Beyond it, a filter uses indexes, which
 * contain the status that a heartbeat or sweep stored last.
 */
const exactFilterLimit = 1000
/** A search covers only this number of newest clusters, to limit its cost. */
const searchLimit = 10_000

export async function list(caller: Caller, { search = '', ids, ...query }: ClusterQuery): Promise<ClusterPage> {
  const { organisationId } = caller
  const { status, type, page, pageSize } = query
  const offset = (page - 1) * pageSize
  const pageOf = (records: ClusterRecord[], totalCount: number) => ({
    items: records.map(summary),
    totalCount,
    page,
    pageSize,
  })

  const clusters = clustersOf(organisationId)
  const term = keys.fold(search.trim())
  if (term !== '' || ids !== undefined) {
    const candidates = await (ids === undefined ? newestRecords(clusters, searchLimit) : byIds(organisationId, ids))
    const matching = candidates.filter(nameContains(term)).map(parseCluster).filter(matches(query))
    return pageOf(matching.slice(offset, offset + pageSize), matching.length)
  }
  const isFiltered = status !== undefined || type !== undefined
  const summaryKeys = [
    keys.clusterOffsets(organisationId),
    ...(isFiltered ? [keys.clusterStatusCounts(organisationId)] : []),
  ]
  const [headItem, statusCounts] = await getConsistent(summaryKeys, { stale: true })
  const { total, ranks } = parseHead(headItem)
  if (!isFiltered) return pageOf((await recordsFrom(clusters, ranks, offset, pageSize)).map(parseCluster), total)
  if (total <= exactFilterLimit) {
    const matching = (await newestRecords(clusters, exactFilterLimit)).map(parseCluster).filter(matches(query))
    return pageOf(matching.slice(offset, offset + pageSize), matching.length)
  }
  const count = countMatching(statusCounts, query)
  return pageOf(await pageByIndex(organisationId, { status, type }, count, { page, pageSize }), count)
}

async function byIds(organisationId: string, ids: string): Promise<Item[]> {
  const clusterKeys = [...new Set(ids.split(','))].map((id) => keys.cluster(organisationId, id))
  return (await getConsistent(clusterKeys, { stale: true })).filter((item) => item !== undefined)
}

const nameContains =
  (term: string) =>
  ({ name }: Item): boolean =>
    keys.fold(String(name)).includes(term)

const matches =
  ({ status, type }: Filter) =>
  (record: ClusterRecord): boolean =>
    (type ?? record.type) === record.type && (status ?? currentStatus(record)) === currentStatus(record)

const countMatching = (statusCounts: Item | undefined, filter: Filter): number =>
  clusterTypes
    .flatMap((type) => clusterStatuses.map((status) => ({ type, status })))
    .filter(({ type, status }) => (filter.type ?? type) === type && (filter.status ?? status) === status)
    .reduce((sum, { type, status }) => sum + Number(statusCounts?.[statusCountName(type, status)] ?? 0), 0)

type Filter = Pick<ClusterQuery, 'status' | 'type'>

async function pageByIndex(
  organisationId: string,
  { status, type }: Filter,
  count: number,
  page: Page,
): Promise<ClusterRecord[]> {
  const index = status === undefined ? 'gsi2' : type === undefined ? 'gsi1' : 'gsi3'
  const pk = keys.clusterPartition(organisationId, { ...(status && { status }), ...(type && { type }) })
  const items = await getConsistent(await pageOfKeys({ index, pk }, count, page), { stale: true })
  return items.filter((item) => item !== undefined).map(parseCluster)
}
