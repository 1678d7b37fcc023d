import { type ClusterStatus, clusterStatuses, type ClusterType, clusterTypes } from '@platform/contract/cluster'
import { type Caller } from '../caller.ts'
import { type ClusterRecord, parseCluster, currentStatus, summary, statusCountName } from './record.ts'
import { observe } from './downtime.ts'
import * as keys from '../db/keys.ts'
import { getConsistent, type Item, queryAll } from '../db/table.ts'
import { pageOfRange } from '../db/index-page.ts'
import { newestRecords, parseHead, type OffsetList, readPage } from '../db/offset-list.ts'
import { type Page, paged, pageOfItems, type PageQuery, type Positioned } from '../db/paging.ts'

/** Lists use eventually consistent reads, so they may lag by less than a second. */

export const clustersOf = (organisationId: string): OffsetList => ({
  head: keys.clusterOffsets(organisationId),
  pk: keys.cluster(organisationId, '').pk,
  prefix: 'clus',
})

export interface ClusterQuery extends PageQuery {
  status?: ClusterStatus | undefined
  type?: ClusterType | undefined
  search?: string | undefined
  /** At most 100 comma-separated ids. */
  ids?: string | undefined
}

interface ClusterRecords extends Positioned {
  records: ClusterRecord[]
  totalCount: number
  /** Whether a search covered all clusters. */
  searchedAll?: boolean
}

/**
 * Up to this number of clusters, a filter reads all records and is exact. Beyond it, a filter uses indexes, which
 * contain the status that a heartbeat or sweep stored last.
 */
const exactFilterLimit = 1000
/** A search together with a filter reads the records of only this number of newest clusters, to limit its cost. */
const filteredSearchLimit = 10_000
/** Limits a search to about twelve queries, each of which returns about 9,000 names. */
const nameLimit = 100_000

export const list = (caller: Caller, { page, pageSize, cursor, search = '', ...query }: ClusterQuery) => {
  const filter = { ...query, term: keys.fold(search.trim()) }
  const scope = ['clusters', caller.organisationId, filter]
  return paged(scope, { page, pageSize, cursor }, async (each) => {
    const { records, ...rest } = await find(caller.organisationId, filter, each)
    return { items: records.map(summary), ...rest }
  })
}

type Filter = Pick<ClusterQuery, 'status' | 'type'>

function find(
  organisationId: string,
  { ids, term, ...filter }: Filter & { ids?: string | undefined; term: string },
  page: Page,
): Promise<ClusterRecords> {
  if (ids !== undefined) return pageOfIds(organisationId, ids.split(','), { ...filter, term }, page)
  const isFiltered = filter.status !== undefined || filter.type !== undefined
  if (term === '') return isFiltered ? pageOfFilter(organisationId, filter, page) : pageOfClusters(organisationId, page)
  return isFiltered ? searchFiltered(organisationId, { ...filter, term }, page) : search(organisationId, term, page)
}

async function pageOfClusters(organisationId: string, page: Page): Promise<ClusterRecords> {
  const { items, ...rest } = await readPage(clustersOf(organisationId), page)
  return { records: items.map(parseCluster), ...rest }
}

async function pageOfFilter(organisationId: string, filter: Filter, page: Page): Promise<ClusterRecords> {
  const summaryKeys = [keys.clusterOffsets(organisationId), keys.clusterStatusCounts(organisationId), keys.sweepState()]
  const [headItem, statusCounts, sweepState] = await getConsistent(summaryKeys, { stale: true })
  observe(sweepState)
  if (parseHead(headItem).total > exactFilterLimit)
    return pageByIndex(organisationId, filter, countMatching(statusCounts, filter), page)
  const records = (await newestRecords(clustersOf(organisationId), exactFilterLimit)).map(parseCluster)
  return pageOfRecords(records.filter(matches(filter)), page)
}

/** In the order of `ids`. */
async function pageOfIds(
  organisationId: string,
  ids: string[],
  { term, ...filter }: Filter & { term: string },
  page: Page,
): Promise<ClusterRecords> {
  const clusterKeys = [...new Set(ids)].map((id) => keys.cluster(organisationId, id))
  const items = (await getConsistent(clusterKeys, { stale: true })).filter((item) => item !== undefined)
  const records = items.filter(nameContains(term)).map(parseCluster).filter(matches(filter))
  const descending = ({ id }: ClusterRecord): string => String(999 - ids.indexOf(id))
  return pageOfRecords(records, page, descending)
}

function pageOfRecords(all: ClusterRecord[], page: Page, position = ({ id }: ClusterRecord) => id): ClusterRecords {
  const { items: records, ...rest } = pageOfItems(all, page, position)
  return { records, ...rest }
}

/** Reads all names, which are small, and only the records of the page. */
async function search(organisationId: string, term: string, page: Page): Promise<ClusterRecords> {
  const { pk } = keys.clusterName(organisationId, '')
  const names = await queryAll({ pk, stale: true }, nameLimit)
  const found = names.flatMap(({ sk, clusterId }) => (String(sk).includes(term) ? [String(clusterId)] : []))
  const { items: ids, ...rest } = pageOfItems(found.toSorted().toReversed(), page, (id) => id)
  const clusterKeys = ids.map((id) => keys.cluster(organisationId, id))
  const items = ids.length === 0 ? [] : await getConsistent(clusterKeys, { stale: true })
  const records = items.filter((item) => item !== undefined).map(parseCluster)
  return { records, ...rest, searchedAll: names.length < nameLimit }
}

async function searchFiltered(
  organisationId: string,
  { term, ...filter }: Filter & { term: string },
  page: Page,
): Promise<ClusterRecords> {
  const items = await newestRecords(clustersOf(organisationId), filteredSearchLimit)
  const records = items.filter(nameContains(term)).map(parseCluster).filter(matches(filter))
  return { ...pageOfRecords(records, page), searchedAll: items.length < filteredSearchLimit }
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

async function pageByIndex(
  organisationId: string,
  { status, type }: Filter,
  count: number,
  page: Page,
): Promise<ClusterRecords> {
  const index = status === undefined ? 'gsi2' : type === undefined ? 'gsi1' : 'gsi3'
  const pk = keys.clusterPartition(organisationId, { ...(status && { status }), ...(type && { type }) })
  const { keys: pageKeys, next } = await pageOfRange({ index, pk }, async () => count, page)
  const items = pageKeys.length === 0 ? [] : await getConsistent(pageKeys, { stale: true })
  return { records: items.filter((item) => item !== undefined).map(parseCluster), totalCount: count, next }
}
