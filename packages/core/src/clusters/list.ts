import {
  type ClusterSort,
  type ClusterStatus,
  clusterStatuses,
  type ClusterType,
  clusterTypes,
} from '@platform/contract/cluster'
import type { Labels } from '@platform/contract/label'
import type { Caller } from '../caller.ts'
import { type ClusterRecord, parseCluster, currentStatus, summary, statusCountName } from './record.ts'
import { observe } from './downtime.ts'
import { labelsBetween, labelsOf, matchesText } from '../labels/labels.ts'
import { exactFilterLimit, type SelectedCluster, type Selection, select } from './select.ts'
import { sortClusters } from './sort.ts'
import * as keys from '../db/keys.ts'
import { getConsistent, type Item } from '../db/table.ts'
import { pageOfRange } from '../db/index-page.ts'
import { readNewestRecords, parseHead, type OffsetList, readPage } from '../db/offset-list.ts'
import { type Order, type Page, paged, pageOfItems, type PageQuery, type Positioned } from '../db/paging.ts'
import { validationFailedError } from '../error.ts'

/** Lists use eventually consistent reads, so they may lag behind writes, usually by less than a second. */

export const clustersOf = (organisationId: string): OffsetList => ({
  head: keys.clusterOffsets(organisationId),
  pk: keys.cluster(organisationId, '').pk,
  prefix: 'clus',
})

export interface ClusterQuery extends PageQuery {
  status?: ClusterStatus | undefined
  type?: ClusterType | undefined
  search?: string | undefined
  selector?: string | undefined
  /** At most 100 comma-separated ids. */
  ids?: string | undefined
  sort?: ClusterSort | undefined
}

interface ClusterRecords extends Positioned {
  records: ClusterRecord[]
  /** Absent if the labels have not been read. */
  labels?: ReadonlyMap<string, Labels>
  totalCount: number
  searchedAll?: boolean
}

/** A search together with a filter reads the records of only this number of newest clusters, to limit its cost. */
const filteredSearchLimit = 10_000

export const list = (caller: Caller, { page, pageSize, cursor, search = '', ...query }: ClusterQuery) => {
  const filter = { ...query, term: keys.fold(search.trim()) }
  const scope = ['clusters', caller.organisationId, filter]
  return paged(scope, { page, pageSize, cursor }, async (requestedPage) => {
    const { records, labels: knownLabels, ...rest } = await find(caller.organisationId, filter, requestedPage)
    const ids = records.map(({ id }) => id)
    const labels = knownLabels ?? (await labelsOf(caller.organisationId, ids))
    return { items: records.map((record) => summary(record, labels.get(record.id) ?? {})), ...rest }
  })
}

type Filter = Pick<ClusterQuery, 'status' | 'type'>
type NamedFilter = Filter & Pick<ClusterQuery, 'selector'> & { term: string }

async function find(
  organisationId: string,
  { ids, sort, ...named }: NamedFilter & Pick<ClusterQuery, 'ids' | 'sort'>,
  page: Page,
): Promise<ClusterRecords> {
  const { selector, term, ...filter } = named
  if (ids !== undefined && sort !== undefined)
    throw validationFailedError([
      { in: 'query', path: '/sort', code: 'not_with_ids', message: 'must be absent with ids, which have an order' },
    ])
  if (ids !== undefined) return pageOfIds(organisationId, ids.split(','), named, page)
  if (sort !== undefined && sort !== '-registeredAt') {
    const { order, ...found } = await sortClusters(organisationId, { ...named, sort })
    return pageOfSelected(organisationId, found, page, order)
  }
  const isFiltered = filter.status !== undefined || filter.type !== undefined
  if (selector !== undefined || (term !== '' && !isFiltered))
    return pageOfSelected(organisationId, await select(organisationId, named, { mayBeStale: true }), page)
  if (term !== '') return searchFiltered(organisationId, { ...filter, term }, page)
  return isFiltered ? pageOfFilter(organisationId, filter, page) : pageOfClusters(organisationId, page)
}

async function pageOfClusters(organisationId: string, page: Page): Promise<ClusterRecords> {
  const { items, ...rest } = await readPage(clustersOf(organisationId), page)
  const records = items.map(parseCluster)
  return { records, ...rest, labels: await labelsBetween(organisationId, records.at(-1)?.id, records[0]?.id) }
}

async function pageOfFilter(organisationId: string, filter: Filter, page: Page): Promise<ClusterRecords> {
  const summaryKeys = [keys.clusterOffsets(organisationId), keys.clusterStatusCounts(organisationId), keys.sweepState()]
  const [headItem, statusCounts, sweepState] = await getConsistent(summaryKeys, { mayBeStale: true })
  observe(sweepState)
  if (parseHead(headItem).total > exactFilterLimit)
    return pageByIndex(organisationId, filter, countMatching(statusCounts, filter), page)
  const records = (await readNewestRecords(clustersOf(organisationId), exactFilterLimit)).map(parseCluster)
  return pageOfRecords(records.filter(matches(filter)), page)
}

async function pageOfIds(
  organisationId: string,
  ids: string[],
  { selector, term, ...filter }: NamedFilter,
  page: Page,
): Promise<ClusterRecords> {
  const clusterKeys = [...new Set(ids)].map((id) => keys.cluster(organisationId, id))
  const items = (await getConsistent(clusterKeys, { mayBeStale: true })).filter((item) => item !== undefined)
  const namedClusters = items.filter(nameContains(term)).map(parseCluster).filter(matches(filter))
  const labels =
    selector === undefined
      ? undefined
      : await labelsOf(
          organisationId,
          namedClusters.map(({ id }) => id),
        )
  const records = labels ? namedClusters.filter(({ id }) => matchesText(selector, labels.get(id))) : namedClusters
  const positionOf = ({ id }: ClusterRecord): string => String(999 - ids.indexOf(id))
  return { ...pageOfRecords(records, page, positionOf), ...(labels && { labels }) }
}

async function pageOfSelected(
  organisationId: string,
  { clusters, searchedAll }: Selection,
  page: Page,
  order?: Order<SelectedCluster>,
): Promise<ClusterRecords> {
  const { items, ...rest } = pageOfItems(clusters, page, ({ id }) => id, order)
  const ids = items.map(({ id }) => id)
  const labels = items.flatMap((cluster) => (cluster.labels ? [[cluster.id, cluster.labels] as const] : []))
  return {
    records: await recordsOf(organisationId, ids),
    ...(labels.length > 0 && { labels: new Map(labels) }),
    ...rest,
    ...(searchedAll !== undefined && { searchedAll }),
  }
}

async function recordsOf(organisationId: string, ids: readonly string[]): Promise<ClusterRecord[]> {
  const clusterKeys = ids.map((id) => keys.cluster(organisationId, id))
  const items = ids.length === 0 ? [] : await getConsistent(clusterKeys, { mayBeStale: true })
  return items.filter((item) => item !== undefined).map(parseCluster)
}

function pageOfRecords(all: ClusterRecord[], page: Page, positionOf = ({ id }: ClusterRecord) => id): ClusterRecords {
  const { items: records, ...rest } = pageOfItems(all, page, positionOf)
  return { records, ...rest }
}

async function searchFiltered(
  organisationId: string,
  { term, ...filter }: Filter & { term: string },
  page: Page,
): Promise<ClusterRecords> {
  const items = await readNewestRecords(clustersOf(organisationId), filteredSearchLimit)
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
  const items = pageKeys.length === 0 ? [] : await getConsistent(pageKeys, { mayBeStale: true })
  return { records: items.filter((item) => item !== undefined).map(parseCluster), totalCount: count, next }
}
