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

/** Pages of clusters, newest first. Lists may lag behind writes by replication, less than a second. */

export const clustersOf = (organisationId: string): OffsetList => ({
  head: keys.clusterOffsets(organisationId),
  pk: keys.cluster(organisationId, '').pk,
  prefix: 'clus',
})

export interface ClusterQuery {
  status?: ClusterStatus | undefined
  type?: ClusterType | undefined
  /** Case-insensitive part of the name; empty matches all. */
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

/** Up to this many clusters a filter reads every record and is exact. One query reads them. */
const exactFilterLimit = 1000
/** A search covers the newest clusters up to this number. */
const searchLimit = 10_000

/**
 * One page. Two calls; a filtered page of a large organisation takes three, and more far from both ends. Such filters
 * use the status last persisted by a heartbeat or sweep. A search reads up to 10,000 records, one call per 1 MB; named
 * clusters take one call.
 */
export async function list(caller: Caller, { search = '', ids, ...query }: ClusterQuery): Promise<ClusterPage> {
  const { organisationId } = caller
  const { status, type, page, pageSize } = query
  const offset = (page - 1) * pageSize
  const answer = (rows: ClusterRecord[], totalCount: number) => ({
    items: rows.map(summary),
    totalCount,
    page,
    pageSize,
  })

  const clusters = clustersOf(organisationId)
  const part = keys.fold(search.trim())
  if (part !== '' || ids !== undefined) {
    const looked = await (ids === undefined ? newestRecords(clusters, searchLimit) : named(organisationId, ids))
    const matching = looked.filter(isNamed(part)).map(parseCluster).filter(matches(query))
    return answer(matching.slice(offset, offset + pageSize), matching.length)
  }
  const isFiltered = status !== undefined || type !== undefined
  const wanted = [
    keys.clusterOffsets(organisationId),
    ...(isFiltered ? [keys.clusterStatusCounts(organisationId)] : []),
  ]
  const [headItem, tally] = await getConsistent(wanted, { stale: true })
  const { total, ranks } = parseHead(headItem)
  if (!isFiltered) return answer((await recordsFrom(clusters, ranks, offset, pageSize)).map(parseCluster), total)
  if (total <= exactFilterLimit) {
    const matching = (await newestRecords(clusters, exactFilterLimit)).map(parseCluster).filter(matches(query))
    return answer(matching.slice(offset, offset + pageSize), matching.length)
  }
  const count = tallied(tally, status, type)
  return answer(await pageByIndex(organisationId, { status, type }, count, { page, pageSize }), count)
}

/** The existing clusters among the ids, in their order. */
async function named(organisationId: string, ids: string): Promise<Item[]> {
  const wanted = [...new Set(ids.split(','))].map((id) => keys.cluster(organisationId, id))
  return (await getConsistent(wanted, { stale: true })).filter((item) => item !== undefined)
}

const isNamed =
  (part: string) =>
  ({ name }: Item): boolean =>
    keys.fold(String(name)).includes(part)

const matches =
  ({ status, type }: Filter) =>
  (row: ClusterRecord): boolean =>
    (type ?? row.type) === row.type && (status ?? currentStatus(row)) === currentStatus(row)

const tallied = (tally: Item | undefined, status: ClusterStatus | undefined, type: ClusterType | undefined): number =>
  clusterTypes
    .filter((each) => (type ?? each) === each)
    .flatMap((each) =>
      clusterStatuses.filter((one) => (status ?? one) === one).map((one) => statusCountName(each, one)),
    )
    .reduce((sum, name) => sum + Number(tally?.[name] ?? 0), 0)

type Filter = Pick<ClusterQuery, 'status' | 'type'>

/** Two calls, unless the page is far from both ends. */
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
