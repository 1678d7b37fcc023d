import { clusterStatuses, clusterTypes } from '@platform/contract/cluster'
import type { Caller } from '@platform/core/caller'
import * as Cluster from '@platform/core/clusters/cluster'
import { type ClusterQuery, clustersOf } from '@platform/core/clusters/list'
import { statusCountName, statusIndexKeys } from '@platform/core/clusters/record'
import { exactFilterLimit } from '@platform/core/clusters/select'
import * as keys from '@platform/core/db/keys'
import { batchPut } from '@platform/core/db/table'
import { newId } from '@platform/core/id'
import { beforeAll, expect, test } from 'vitest'
import { newCaller } from '../../support/fixtures.ts'
import { storeClusters } from '../support/batches.ts'

const kinds = clusterTypes.flatMap((type) => clusterStatuses.map((status) => ({ type, status })))
const clusters = Array.from({ length: exactFilterLimit + 1 }, (_, index) => ({
  id: newId('clus'),
  // Unequal numbers of clusters of each kind.
  ...kinds[Math.floor(Math.sqrt(index)) % kinds.length]!,
})).toSorted((one, other) => (one.id < other.id ? 1 : -1))

let caller: Caller

beforeAll(async () => {
  caller = await newCaller()
  const { organisationId } = caller
  const counts = kinds.map(({ type, status }) => [
    statusCountName(type, status),
    clusters.filter((cluster) => cluster.type === type && cluster.status === status).length,
  ])
  await batchPut([
    ...clusters.map(({ id, type, status }) => ({
      ...keys.cluster(organisationId, id),
      ...{ id, name: id, type, ...statusIndexKeys({ organisationId, type }, status) },
    })),
    { ...clustersOf(organisationId).head, total: clusters.length },
    { ...keys.clusterStatusCounts(organisationId), ...Object.fromEntries(counts) },
  ])
})

type Filter = Pick<ClusterQuery, 'type' | 'status'>

test.each<Filter>([
  ...clusterTypes.map((type) => ({ type })),
  ...clusterStatuses.map((status) => ({ status })),
  ...kinds,
])('in a large organisation, the filter $type $status selects by the stored status', async ({ type, status }) => {
  const ids = clusters
    .filter((cluster) => (type ?? cluster.type) === cluster.type && (status ?? cluster.status) === cluster.status)
    .map(({ id }) => id)
  const walkedIds: string[] = []
  let cursor: string | undefined
  do {
    const page = await Cluster.list(caller, { page: 1, pageSize: 60, type, status, cursor })
    expect(page.totalCount).toBe(ids.length)
    walkedIds.push(...page.items.map(({ id }) => id))
    cursor = page.nextCursor
  } while (cursor !== undefined)
  expect(walkedIds).toEqual(ids)
  for (const [page, expectedIds] of [
    [2, ids.slice(30, 60)],
    [40, []],
  ] as const) {
    const { items, totalCount } = await Cluster.list(caller, { page, pageSize: 30, type, status })
    expect([items.map(({ id }) => id), totalCount]).toEqual([expectedIds, ids.length])
  }
})

test.each<[Filter, number]>([
  [{ status: 'Pending' }, 120],
  [{ status: 'Offline' }, 0],
  [{ status: 'Pending', type: 'Hypervisor' }, 120],
  [{ status: 'Pending', type: 'CloudLocal' }, 0],
])('a selector of most clusters together with %o selects %i', async (filter, count) => {
  const otherCaller = await newCaller()
  await storeClusters(otherCaller, 120)
  const query = { page: 1, pageSize: 10, selector: 'platform/type=Hypervisor', ...filter }
  expect(await Cluster.list(otherCaller, query)).toMatchObject({ totalCount: count })
})
