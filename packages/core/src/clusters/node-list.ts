import type { NodeFacts } from '@platform/contract/facts'
import type { NodeSort, NodeSummary } from '@platform/contract/cluster'
import type { Caller } from '../caller.ts'
import * as keys from '../db/keys.ts'
import { cutSortText, sortItems } from '../db/order.ts'
import { firstOf, type Page, paged, pageOfItems, type PageQuery } from '../db/paging.ts'
import { getConsistent, type Item, query } from '../db/table.ts'
import { parseFacts } from './facts.ts'
import { nodesView, parseNodes } from './node.ts'
import { currentStatus, parseCluster } from './record.ts'
import { validationFailedError } from '../error.ts'
import { select } from './select.ts'

export interface NodeQuery extends PageQuery {
  selector?: string | undefined
  os?: string | undefined
  search?: string | undefined
  sort?: NodeSort | undefined
}

/** Limits a request. Each query (1 MB) returns the nodes of at least about 1,000 clusters. */
const maxCalls = 12
/** Positions descend within a cluster, in the order of its nodes, of which there are at most 2,000. */
const maxIndex = 9999

interface Match {
  position: string
  clusterId: string
  nodeId: string
  name: string
  /** Absent if neither the filter nor the order needs them. */
  facts?: NodeFacts | undefined
  item: Item
}

const positionOf = (clusterId: string, index: number): string =>
  `${clusterId}_${String(maxIndex - index).padStart(4, '0')}`

/**
 * A page by number reads all nodes up to the limit of calls, to count them. A page by cursor reads until it is full,
 * unless the list is sorted. Pages may lag behind writes, usually by less than a second.
 */
export const listNodes = (caller: Caller, { page, pageSize, cursor, ...query }: NodeQuery) => {
  const { organisationId } = caller
  const { selector, os, search = '', sort } = query
  const filter = { selector, os: os?.toLowerCase(), term: keys.fold(search.trim()), sort }
  return paged(['nodes', organisationId, filter], { page, pageSize, cursor }, async (requestedPage) => {
    const nodePage = await (sort === undefined
      ? newestNodes(organisationId, filter, requestedPage)
      : sortedNodes(organisationId, { ...filter, sort }, requestedPage))
    return { ...nodePage, items: await viewsOf(organisationId, nodePage.items) }
  })
}

interface Filter {
  selector: string | undefined
  os: string | undefined
  term: string
  sort?: NodeSort | undefined
}

async function newestNodes(organisationId: string, filter: Filter, page: Page) {
  const { before, pageSize } = page
  const isEnough = (matches: readonly Match[]) =>
    before !== undefined && matches.filter(isBefore(before)).length > pageSize
  const { matches, last, searchedAll } = await findNodes(organisationId, filter, { before, isEnough })
  const rest = matches.filter(isBefore(before))
  const { items, next } = firstOf(rest.slice((page.page - 1) * pageSize), pageSize, ({ position }) => position)
  return { items, totalCount: rest.length, searchedAll, next: next ?? (searchedAll ? undefined : last) }
}

async function sortedNodes(organisationId: string, filter: Filter & { sort: NodeSort }, page: Page) {
  const { matches, searchedAll } = await findNodes(organisationId, filter, { isEnough: () => false })
  if (!searchedAll) throw tooManyNodesError()
  const valueOf = valuesOf(filter.sort)
  const { items, order } = sortItems(matches, { sort: filter.sort, idOf: ({ position }) => position, valueOf })
  return { ...pageOfItems(items, page, ({ position }) => position, order), searchedAll }
}

const tooManyNodesError = () =>
  validationFailedError([
    {
      in: 'query',
      path: '/sort',
      code: 'too_many_nodes',
      message: 'accepts at most about 12,000 clusters in the organisation. Remove it and read by cursor',
    },
  ])

function valuesOf(sort: NodeSort): (match: Match) => string {
  const field = sort.replace('-', '')
  return ({ name, facts }) => {
    if (field === 'name') return cutSortText(keys.fold(name))
    if (field === 'os') return cutSortText(keys.fold(facts?.osVersion ?? facts?.os ?? ''))
    const value = Object.entries(facts ?? {}).find(([name]) => name === field)?.[1]
    return typeof value === 'string' || typeof value === 'number' ? cutSortText(String(value)) : ''
  }
}

interface Search {
  before?: string | undefined
  isEnough: (matches: readonly Match[]) => boolean
}

async function findNodes(organisationId: string, filter: Filter, { before, isEnough }: Search) {
  const { selector } = filter
  const selected = selector === undefined ? undefined : await selectedIds(organisationId, selector)
  const matches: Match[] = []
  let after: Item | undefined
  let lastPosition: string | undefined
  let callCount = 0
  do {
    const range = { pk: keys.nodes(organisationId, '').pk, isNewestFirst: true, mayBeStale: true }
    const to = before === undefined ? {} : { to: before.slice(0, before.lastIndexOf('_')) }
    const result = await query({ ...range, ...to, ...(after && { after }) })
    for (const item of result.items) {
      if (selected === undefined || selected.has(String(item['sk']))) matches.push(...matchesIn(item, filter))
      lastPosition = positionOf(String(item['sk']), maxIndex)
    }
    after = result.next
    callCount++
  } while (after !== undefined && callCount < maxCalls && !isEnough(matches))
  return { matches, last: lastPosition, searchedAll: after === undefined }
}

const isBefore =
  (before: string | undefined) =>
  ({ position }: Match): boolean =>
    before === undefined || position < before

const selectedIds = async (organisationId: string, selector: string): Promise<ReadonlySet<string>> => {
  const { clusters } = await select(organisationId, { selector, term: '' }, { mayBeStale: true })
  return new Set(clusters.map(({ id }) => id))
}

function matchesIn(item: Item, { os, term, sort }: Filter): Match[] {
  const clusterId = String(item['sk'])
  const facts = os === undefined && (sort ?? 'name').endsWith('name') ? {} : parseFacts(item).facts
  return parseNodes(item).flatMap(({ id, name }, index) => {
    const isOfSystem = os === undefined || facts[id]?.os?.toLowerCase() === os
    return isOfSystem && keys.fold(name).includes(term)
      ? [{ position: positionOf(clusterId, index), clusterId, nodeId: id, name, facts: facts[id], item }]
      : []
  })
}

/** Omits nodes whose cluster was removed. */
async function viewsOf(organisationId: string, matches: readonly Match[]): Promise<NodeSummary[]> {
  const items = new Map(matches.map(({ clusterId, item }) => [clusterId, item]))
  const clusterIds = [...items.keys()]
  const clusterKeys = clusterIds.map((id) => keys.cluster(organisationId, id))
  const records = clusterIds.length === 0 ? [] : await getConsistent(clusterKeys, { mayBeStale: true })
  const nodes = new Map<string, NodeSummary>()
  for (const [index, clusterId] of clusterIds.entries()) {
    const record = records[index] && parseCluster(records[index])
    if (record === undefined) continue
    for (const node of nodesView(items.get(clusterId), currentStatus(record)))
      nodes.set(node.id, { ...node, clusterId, clusterName: record.name })
  }
  return matches.map(({ nodeId }) => nodes.get(nodeId)).filter((node) => node !== undefined)
}
