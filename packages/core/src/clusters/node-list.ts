import { type NodeSummary } from '@platform/contract/cluster'
import { type Caller } from '../caller.ts'
import * as keys from '../db/keys.ts'
import { firstOf, paged, type PageQuery } from '../db/paging.ts'
import { getConsistent, type Item, query } from '../db/table.ts'
import { parseFacts } from './facts.ts'
import { nodesView, parseNodes } from './node.ts'
import { currentStatus, parseCluster } from './record.ts'
import { select } from './select.ts'

export interface NodeQuery extends PageQuery {
  selector?: string | undefined
  os?: string | undefined
  search?: string | undefined
}

/** Limits a request: each call returns the nodes of about 1,000 clusters or more (1 MB). */
const maxCalls = 12
/** Positions descend within a cluster, in the order of its nodes, of which there are at most 2,000. */
const maxIndex = 9999

interface Match {
  position: string
  clusterId: string
  nodeId: string
  item: Item
}

const positionOf = (clusterId: string, index: number): string =>
  `${clusterId}_${String(maxIndex - index).padStart(4, '0')}`

/** Reads until the page is full or the limit of calls is reached. Pages may lag behind writes by less than a second. */
export const listNodes = (caller: Caller, { page, pageSize, cursor, selector, os, search = '' }: NodeQuery) => {
  const { organisationId } = caller
  const filter = { selector, os: os?.toLowerCase(), term: keys.fold(search.trim()) }
  return paged(['nodes', organisationId, filter], { page, pageSize, cursor }, async ({ before }) => {
    const selected = selector === undefined ? undefined : await selectedIds(organisationId, selector)
    const needed = page * pageSize + 1
    const matches: Match[] = []
    let after: Item | undefined
    let last: string | undefined
    let calls = 0
    do {
      const range = { pk: keys.nodes(organisationId, '').pk, newestFirst: true, stale: true }
      const to = before === undefined ? {} : { to: before.slice(0, before.lastIndexOf('_')) }
      const found = await query({ ...range, ...to, ...(after && { after }) })
      for (const item of found.items) {
        if (selected === undefined || selected.has(String(item['sk']))) matches.push(...matchesIn(item, filter))
        last = positionOf(String(item['sk']), maxIndex)
      }
      after = found.next
      calls++
    } while (after !== undefined && calls < maxCalls && matches.filter(isBefore(before)).length < needed)
    const rest = matches.filter(isBefore(before))
    const { items, next } = firstOf(rest.slice((page - 1) * pageSize), pageSize, ({ position }) => position)
    const searchedAll = after === undefined
    const nodes = await viewsOf(organisationId, items)
    return { items: nodes, totalCount: rest.length, searchedAll, next: next ?? (searchedAll ? undefined : last) }
  })
}

const isBefore =
  (before: string | undefined) =>
  ({ position }: Match): boolean =>
    before === undefined || position < before

const selectedIds = async (organisationId: string, selector: string): Promise<ReadonlySet<string>> => {
  const { selected } = await select(organisationId, { selector, term: '' }, { stale: true })
  return new Set(selected.map(({ id }) => id))
}

function matchesIn(item: Item, { os, term }: { os: string | undefined; term: string }): Match[] {
  const clusterId = String(item['sk'])
  const facts = os === undefined ? {} : parseFacts(item).facts
  return parseNodes(item).flatMap(({ id, name }, index) => {
    const isOfSystem = os === undefined || facts[id]?.os?.toLowerCase() === os
    return isOfSystem && keys.fold(name).includes(term)
      ? [{ position: positionOf(clusterId, index), clusterId, nodeId: id, item }]
      : []
  })
}

/** Skips nodes whose cluster was removed. */
async function viewsOf(organisationId: string, matches: readonly Match[]): Promise<NodeSummary[]> {
  const items = new Map(matches.map(({ clusterId, item }) => [clusterId, item]))
  const clusterIds = [...items.keys()]
  const clusterKeys = clusterIds.map((id) => keys.cluster(organisationId, id))
  const records = clusterIds.length === 0 ? [] : await getConsistent(clusterKeys, { stale: true })
  const nodes = new Map<string, NodeSummary>()
  for (const [index, clusterId] of clusterIds.entries()) {
    const record = records[index] && parseCluster(records[index])
    if (record === undefined) continue
    for (const node of nodesView(items.get(clusterId), currentStatus(record)))
      nodes.set(node.id, { ...node, clusterId, clusterName: record.name })
  }
  return matches.map(({ nodeId }) => nodes.get(nodeId)).filter((node) => node !== undefined)
}
