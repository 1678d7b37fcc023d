import type { NodeSort } from '@platform/contract/cluster'
import type { Caller } from '@platform/core/caller'
import { factsAttributes } from '@platform/core/clusters/facts'
import { nodesItem } from '@platform/core/clusters/node'
import { listNodes, type NodeQuery } from '@platform/core/clusters/node-list'
import * as keys from '@platform/core/db/keys'
import { batchPut, batchRemove } from '@platform/core/db/table'
import { beforeAll, expect, test } from 'vitest'
import { errorOf, newCaller } from '../../support/fixtures.ts'
import { storeClusters } from '../support/batches.ts'

type Facts = Record<string, string | number>

/** Stores each list of nodes as a cluster; later ones are newer. Items of 390 KB fill a query with three clusters. */
async function storeNodes(caller: Caller, clusters: Record<string, Facts>[], padding = ''): Promise<string[]> {
  const ids = (await storeClusters(caller, clusters.length)).toSorted()
  const items = clusters.map((facts, index) => {
    const nodes = Object.keys(facts).map((id) => ({ id, name: id, status: 'Online' as const, ...facts[id] }))
    return {
      ...keys.nodes(caller.organisationId, ids[index] ?? ''),
      ...nodesItem(nodes),
      ...factsAttributes({ relayVersion: '1', custom: {}, nodes }, new Set(Object.keys(facts))),
      padding,
    }
  })
  await batchPut(items)
  return ids
}

async function walk(caller: Caller, query: Partial<NodeQuery>): Promise<string[]> {
  const names: string[] = []
  let cursor: string | undefined
  do {
    const page = await listNodes(caller, { page: 1, pageSize: 1, cursor, ...query })
    names.push(...page.items.map(({ name }) => name))
    cursor = page.nextCursor
  } while (cursor !== undefined)
  return names
}

let mixedCaller: Caller
let largeCaller: Caller
const largeNames = Array.from({ length: 40 }, (_, index) => `web-${index}`)

beforeAll(async () => {
  mixedCaller = await newCaller()
  await storeNodes(mixedCaller, [
    { a: { os: 'linux', osVersion: 'Debian 12', arch: 'x86_64', cpus: 16, memoryBytes: 8e9, rootDiskFreeBytes: 700 } },
    { b: { os: 'Arch', arch: 'aarch64', cpus: 9, memoryBytes: 32e9, rootDiskFreeBytes: 90 }, none: {} },
    { c: { osVersion: 'Debian 9', arch: 'x86_64', cpus: 9, memoryBytes: 16e9, rootDiskFreeBytes: 1000 } },
  ])
  largeCaller = await newCaller()
  const [oldest, ...others] = largeNames.map((name) => ({ [name]: {} }))
  await storeNodes(largeCaller, [{ ...oldest, 'db-1': {} }, ...others], 'x'.repeat(390_000))
}, 120_000)

test.each<[NodeSort, string]>([
  ['name', 'a b c none'],
  ['-name', 'none c b a'],
  ['os', 'b c a none'],
  ['-os', 'a c b none'],
  ['arch', 'b c a none'],
  ['-arch', 'c a b none'],
  ['cpus', 'c b a none'],
  ['-memoryBytes', 'b c a none'],
  ['rootDiskFreeBytes', 'b a c none'],
])('cursors by %s return each node once: equal ones newest first, those without value last', async (sort, names) => {
  expect(await walk(mixedCaller, { sort })).toEqual(names.split(' '))
})

test('nodes of a removed cluster are not listed', async () => {
  const caller = await newCaller()
  const ids = await storeNodes(caller, [{ a: {} }, { b: {} }])
  await batchRemove([keys.cluster(caller.organisationId, ids[1] ?? '')])
  expect(await walk(caller, {})).toEqual(['a'])
})

test('cursors continue a list of nodes beyond what a request reads, and return each node once', async () => {
  const newestFirst = largeNames.toReversed()
  expect(await walk(largeCaller, { pageSize: 15 })).toEqual([...newestFirst, 'db-1'])
  const page = await listNodes(largeCaller, { page: 1, pageSize: 15, search: 'db' })
  expect(page).toMatchObject({ items: [], totalCount: 0, searchedAll: false })
  const nextPage = await listNodes(largeCaller, { page: 1, pageSize: 15, search: 'db', cursor: page.nextCursor })
  expect(nextPage).toMatchObject({ items: [{ name: 'db-1' }], searchedAll: true })
})

test('a sort of more nodes than a request reads is rejected', async () => {
  const { extra } = await errorOf(listNodes(largeCaller, { page: 1, pageSize: 15, sort: 'name' }))
  expect(extra.details).toMatchObject([{ path: '/sort', code: 'too_many_nodes' }])
})
