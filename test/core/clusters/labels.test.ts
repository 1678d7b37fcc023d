import { labelLimit } from '@platform/contract/label'
import type { Caller } from '@platform/core/caller'
import * as Cluster from '@platform/core/clusters/cluster'
import { reportedLabelsWrite } from '@platform/core/labels/labels'
import type { ClusterQuery } from '@platform/core/clusters/list'
import * as Select from '@platform/core/clusters/select'
import * as Site from '@platform/core/clusters/site'
import * as keys from '@platform/core/db/keys'
import { get } from '@platform/core/db/table'
import { transact } from '@platform/core/db/transact'
import { beforeAll, expect, test } from 'vitest'
import { bootstrapPlatform, enrolledCluster, errorCodeOf, errorOf, newCaller } from '../../support/fixtures.ts'
import { storeClusters } from '../support/batches.ts'
import { measureUsage } from '../support/usage.ts'

beforeAll(bootstrapPlatform)

const newCluster = async (caller: Caller, name: string, labels: Record<string, string> = {}, siteId?: string) =>
  (await Cluster.register(caller, { name, type: 'Hypervisor', labels, siteId })).id

const labelsOf = async (caller: Caller, id: string) => (await Cluster.read(caller, id)).labels

test('merges changes of labels, and derives labels from the cluster, its site and reported facts', async () => {
  const caller = await newCaller()
  const { id: siteId } = await Site.create(caller, { name: 'north' })
  const id = await newCluster(caller, 'berlin-1', { env: 'prod', constructor: '' }, siteId)
  const derivedLabels = { 'platform/type': 'Hypervisor', 'platform/site': siteId }
  expect(await labelsOf(caller, id)).toEqual({ env: 'prod', constructor: '', ...derivedLabels })
  await Cluster.update(caller, id, { labels: { env: 'test', tier: 'web', constructor: null, absent: null } })
  await transact([reportedLabelsWrite(caller.organisationId, id, { 'platform/os': 'linux', 'facts/rack': 'a-7' })])
  await Cluster.update(caller, id, { siteId: null, labels: { 'app.io/x': '1' } })
  const labels = { env: 'test', tier: 'web', 'app.io/x': '1', 'platform/type': 'Hypervisor', 'platform/os': 'linux' }
  expect(await labelsOf(caller, id)).toEqual({ ...labels, 'facts/rack': 'a-7' })
  await Cluster.remove(caller, id)
  expect(await get(keys.clusterLabels(caller.organisationId, id))).toBeUndefined()
})

test('concurrent changes of labels, sites and facts lose nothing', async () => {
  const caller = await newCaller()
  const { id: siteId } = await Site.create(caller, { name: 'north' })
  const id = await newCluster(caller, 'berlin-1', { old: '1' })
  const numbers = Array.from({ length: 8 }, (_, index) => String(index))
  await Promise.all([
    ...numbers.map((n) => Cluster.update(caller, id, { labels: { [`k${n}`]: n } })),
    Cluster.update(caller, id, { labels: { old: null } }),
    Cluster.update(caller, id, { siteId }),
    transact([reportedLabelsWrite(caller.organisationId, id, { 'platform/os': 'linux' })]),
  ])
  expect(await labelsOf(caller, id)).toEqual({
    ...Object.fromEntries(numbers.map((n) => [`k${n}`, n])),
    'platform/type': 'Hypervisor',
    'platform/site': siteId,
    'platform/os': 'linux',
  })
})

test('limits the labels of a cluster, without derived ones', async () => {
  const caller = await newCaller()
  const maxLabels = Object.fromEntries(Array.from({ length: labelLimit }, (_, index) => [`k${index}`, '']))
  const id = await newCluster(caller, 'berlin-1', maxLabels)
  const error = await errorOf(Cluster.update(caller, id, { labels: { more: '' } }))
  expect(error).toMatchObject({ code: 'limit_reached', extra: { limit: labelLimit, used: labelLimit } })
  await Cluster.update(caller, id, { labels: { more: '', k0: null } })
  expect(Object.keys(await labelsOf(caller, id))).toHaveLength(labelLimit + 1)
})

test('a change of labels costs at most 12 write units, and a repeat none', async () => {
  const caller = await newCaller()
  const labels = Object.fromEntries(Array.from({ length: 20 }, (_, index) => [`label-${index}`, `value-${index}`]))
  const id = await newCluster(caller, 'berlin-1', labels)
  const change = () => measureUsage(() => Cluster.update(caller, id, { labels: { 'label-0': 'other' } }))
  const { usage, result } = await change()
  expect(result.labels['label-0']).toBe('other')
  expect(usage.writeUnits).toBeLessThanOrEqual(12)
  expect((await change()).usage.writeUnits).toBe(0)
})

async function fleet() {
  const caller = await newCaller()
  const ids: Record<string, string> = {}
  for (const [name, labels] of Object.entries({
    'prod-1': { env: 'prod' },
    'prod-2': { env: 'prod', legacy: '' },
    'test-1': { env: 'test' },
    bare: {},
  }))
    ids[name] = await newCluster(caller, name, labels)
  const cloud = { name: 'prod-3', type: 'CloudLocal', labels: { env: 'prod' } } as const
  ids['prod-3'] = (await Cluster.register(caller, cloud)).id
  const { cluster } = await enrolledCluster(caller)
  await Cluster.update(caller, cluster.id, { name: 'prod-4', labels: { env: 'prod' } })
  return { caller, ids }
}

test('lists clusters by selector together with other filters, with exact totals', async () => {
  const { caller, ids } = await fleet()
  await newCluster(await newCaller(), 'foreign', { env: 'prod' })
  const joinedIds = Object.values(ids).join()
  for (const [query, expected] of [
    [{ selector: 'env=prod' }, ['prod-4', 'prod-3', 'prod-2', 'prod-1']],
    [{ selector: 'env=prod,!legacy' }, ['prod-4', 'prod-3', 'prod-1']],
    [{ selector: 'env notin (prod)' }, ['bare', 'test-1']],
    [{ selector: 'platform/type=CloudLocal' }, ['prod-3']],
    [{ selector: 'env=prod', type: 'Hypervisor' }, ['prod-4', 'prod-2', 'prod-1']],
    [{ selector: 'env=prod', status: 'Healthy' }, ['prod-4']],
    [{ selector: 'env', status: 'Pending', search: '-1' }, ['test-1', 'prod-1']],
    [{ selector: 'env=prod', ids: joinedIds }, ['prod-1', 'prod-2', 'prod-3']],
    [{ selector: 'env=none' }, []],
  ] satisfies [Partial<ClusterQuery>, string[]][]) {
    const { items, totalCount } = await Cluster.list(caller, { page: 1, pageSize: 2, ...query })
    expect([query, items.map(({ name }) => name), totalCount]).toEqual([query, expected.slice(0, 2), expected.length])
  }
})

test('sorts clusters by names, labels, sites, statuses and records; cursors continue in the same order', async () => {
  const { caller, ids } = await fleet()
  const { id: siteId } = await Site.create(caller, { name: 'Zurich' })
  const otherSite = await Site.create(caller, { name: 'Aachen' })
  await Cluster.update(caller, ids['bare'] ?? '', { siteId, name: 'Prod-10' })
  await Cluster.update(caller, ids['test-1'] ?? '', { siteId: otherSite.id })
  for (const [query, expected] of [
    [{ sort: 'name' }, ['prod-1', 'prod-2', 'prod-3', 'prod-4', 'Prod-10', 'test-1']],
    [{ sort: '-name', selector: 'env=prod' }, ['prod-4', 'prod-3', 'prod-2', 'prod-1']],
    [{ sort: 'registeredAt', search: 'prod-' }, ['prod-1', 'prod-2', 'Prod-10', 'prod-3', 'prod-4']],
    [{ sort: 'site' }, ['test-1', 'Prod-10', 'prod-4', 'prod-3', 'prod-2', 'prod-1']],
    [{ sort: '-site', type: 'Hypervisor' }, ['Prod-10', 'test-1', 'prod-4', 'prod-2', 'prod-1']],
    [{ sort: '-status', selector: 'env=prod' }, ['prod-4', 'prod-3', 'prod-2', 'prod-1']],
    [{ sort: 'lastSeenAt', status: 'Healthy' }, ['prod-4']],
    [{ sort: '-nodeCount', type: 'Hypervisor', selector: 'env' }, ['prod-4', 'test-1', 'prod-2', 'prod-1']],
    [{ sort: 'type' }, ['prod-3', 'prod-4', 'Prod-10', 'test-1', 'prod-2', 'prod-1']],
  ] satisfies [Partial<ClusterQuery>, string[]][]) {
    const names: string[] = []
    let cursor: string | undefined
    do {
      const page = await Cluster.list(caller, { page: 1, pageSize: 2, ...query, ...(cursor && { cursor }) })
      names.push(...page.items.map(({ name }) => name))
      expect(page.totalCount).toBe(expected.length)
      cursor = page.nextCursor
    } while (cursor !== undefined)
    expect([query, names]).toEqual([query, expected])
  }
  const idQuery = { page: 1, pageSize: 2, sort: 'name', ids: ids['bare'] } as const
  expect(await errorCodeOf(Cluster.list(caller, idQuery))).toBe('validation_failed')
})

test('sorts many clusters by record only after a filter, and by status from the index', async () => {
  const caller = await newCaller()
  const [id = ''] = await storeClusters(caller, 1001)
  await Cluster.update(caller, id, { labels: { env: 'prod' } })
  const listSorted = (query: Partial<ClusterQuery>) => Cluster.list(caller, { page: 1, pageSize: 1, ...query })
  expect(await errorOf(listSorted({ sort: 'lastSeenAt' }))).toMatchObject({ extra: { details: [{ path: '/sort' }] } })
  expect((await listSorted({ sort: 'lastSeenAt', selector: 'env' })).items[0]).toMatchObject({ id })
  const { usage, result } = await measureUsage(() => listSorted({ sort: 'status' }))
  expect([result.totalCount, usage.calls.length <= 12]).toEqual([1001, true])
})

test('counts the clusters of each label key and value', async () => {
  const { caller } = await fleet()
  const env = { key: 'env', clusterCount: 5, hasMoreValues: false }
  const values = [
    { value: 'prod', clusterCount: 4 },
    { value: 'test', clusterCount: 1 },
  ]
  const { items, hasMoreKeys } = await Select.listLabels(caller, {})
  expect([items.slice(0, 3).map(({ key }) => key), hasMoreKeys]).toEqual([['platform/type', 'env', 'legacy'], false])
  expect(items[1]).toEqual({ ...env, values })
  expect(await Select.listLabels(caller, { key: 'env' })).toEqual({ items: [{ ...env, values }], hasMoreKeys: false })
})
