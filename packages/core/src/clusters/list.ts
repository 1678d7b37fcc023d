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

/** Pages of clusters, newest first (D12). Lists may lag behind writes by the store's replication, below a second. */

/** The clusters of an organisation. */
export const clustersOf = (organisationId: string): OffsetList => ({
  head: keys.clusterOffsets(organisationId),
  pk: keys.cluster(organisationId, '').pk,
  prefix: 'clus',
})

export interface ClusterQuery {
  status?: ClusterStatus | undefined
  type?: ClusterType | undefined
  /** Part of the name, without regard to case; nothing in particular finds everything. */
  search?: string | undefined
  /** At most 100 identifiers with commas between them. */
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

/** Up to this many clusters a filter looks at every row, and is exact at the moment of the call. One query reads them. */
const exactFilterLimit = 1000
/** A search looks at the names of so many clusters, the newest ones. */
const searchLimit = 10_000

/**
 * One page. Two calls; a filtered page of a large organisation three, more only far from both ends. There the filter
 * goes by the status that the last beat or sweep persisted. A search reads up to 10,000 rows, in one call per 1 MB;
 * named clusters are read in one.
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

/** Those of the ids that there are, in their order. */
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

/** Two calls, unless the page lies far from both ends. */
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
