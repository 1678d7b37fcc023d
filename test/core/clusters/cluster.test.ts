import { beforeAll, expect, test } from 'vitest'
import { siteLimit } from '@platform/contract/site'
import * as Cluster from '@platform/core/clusters/cluster'
import { issue } from '@platform/core/relays/enrollment'
import { heartbeat } from '@platform/core/relays/heartbeat'
import * as Site from '@platform/core/clusters/site'
import * as keys from '@platform/core/db/keys'
import { patch } from '@platform/core/db/table'
import { transact } from '@platform/core/db/transact'
import { refusalBy } from '../../support/asked.ts'
import { callerOf, enrolledCluster, refusalOf, started } from '../../support/world.ts'

beforeAll(started)

const firstPage = { page: 1, pageSize: 20 }

test('a registered cluster is Pending, listed, and found by its id', async () => {
  const caller = await callerOf()
  const registered = await Cluster.register(caller, { name: 'Berlin', type: 'CloudLocal' })
  expect(registered).toMatchObject({ name: 'Berlin', type: 'CloudLocal', status: 'Pending' })
  expect(registered.relayCommand).toContain(registered.enrollmentToken)
  expect(await Cluster.read(caller, registered.id)).toMatchObject({
    status: 'Pending',
    nodes: [],
    relay: null,
    nodeCount: 0,
  })
  expect(await Cluster.list(caller, firstPage)).toMatchObject({ totalCount: 1, items: [{ id: registered.id }] })
})

test('another organisation neither sees nor touches a cluster', async () => {
  const { id } = await Cluster.register(await callerOf(), { name: 'ours', type: 'Hypervisor' })
  const stranger = await callerOf()
  expect(await refusalOf(Cluster.read(stranger, id))).toBe('cluster_not_found')
  expect(await refusalOf(Cluster.update(stranger, id, { name: 'theirs' }))).toBe('cluster_not_found')
  expect(await refusalOf(Cluster.remove(stranger, id))).toBe('cluster_not_found')
  expect(await refusalOf(issue(stranger, id))).toBe('cluster_not_found')
  expect(await Cluster.list(stranger, firstPage)).toMatchObject({ totalCount: 0, items: [] })
})

test('names are unique within an organisation whatever their case, and free again after a rename or removal', async () => {
  const caller = await callerOf()
  const first = await Cluster.register(caller, { name: 'Alpha', type: 'Hypervisor' })
  expect(await refusalOf(Cluster.register(caller, { name: 'aLPHA', type: 'Hypervisor' }))).toBe('cluster_name_taken')
  await Cluster.register(await callerOf(), { name: 'Alpha', type: 'Hypervisor' })
  await Cluster.update(caller, first.id, { name: 'ALPHA' })
  await Cluster.update(caller, first.id, { name: 'Beta' })
  const second = await Cluster.register(caller, { name: 'Alpha', type: 'Hypervisor' })
  expect(await refusalOf(Cluster.update(caller, second.id, { name: 'beta' }))).toBe('cluster_name_taken')
  await Cluster.remove(caller, first.id)
  await Cluster.register(caller, { name: 'beta', type: 'Hypervisor' })
})

test('registrations at the same moment are all listed once, newest first', async () => {
  const caller = await callerOf()
  const names = Array.from({ length: 12 }, (_, index) => `cluster ${index}`)
  await Promise.all(names.map((name) => Cluster.register(caller, { name, type: 'Hypervisor' })))
  const pages = await Promise.all([1, 2, 3].map((page) => Cluster.list(caller, { page, pageSize: 5 })))
  const listed = pages.flatMap(({ items }) => items)
  expect(pages.map(({ totalCount }) => totalCount)).toEqual([12, 12, 12])
  expect(listed.map(({ name }) => name).toSorted()).toEqual(names.toSorted())
  expect(listed.map(({ id }) => id)).toEqual(
    listed
      .map(({ id }) => id)
      .toSorted()
      .toReversed(),
  )
})

test('filters by status and type count what they show', async () => {
  const caller = await callerOf()
  await Cluster.register(caller, { name: 'pending one', type: 'CloudLocal' })
  await enrolledCluster(caller)
  await enrolledCluster(caller)
  const counts = async (filter: object) => {
    const { items, totalCount } = await Cluster.list(caller, { ...firstPage, ...filter })
    return [items.length, totalCount]
  }
  expect(await counts({ status: 'Healthy' })).toEqual([2, 2])
  expect(await counts({ status: 'Pending' })).toEqual([1, 1])
  expect(await counts({ type: 'CloudLocal' })).toEqual([1, 1])
  expect(await counts({ type: 'CloudLocal', status: 'Healthy' })).toEqual([0, 0])
})

test('a search finds a part of the name, whatever its case and with other filters; it counts what it shows', async () => {
  const caller = await callerOf()
  for (const name of ['Berlin-1', 'berlin-2', 'MÜNCHEN-1', 'paris [a.*]']) {
    const type = name.endsWith('2') ? 'CloudLocal' : 'Hypervisor'
    await Cluster.register(caller, { name, type })
  }
  const found = async (search: string, more: object = {}) => {
    const { items, totalCount } = await Cluster.list(caller, { ...firstPage, search, ...more })
    return [items.map(({ name }) => name), totalCount]
  }
  expect(await found('BERLIN')).toEqual([['berlin-2', 'Berlin-1'], 2])
  expect(await found('münchen')).toEqual([['MÜNCHEN-1'], 1])
  expect(await found('[a.*]')).toEqual([['paris [a.*]'], 1])
  expect(await found('berlin', { type: 'CloudLocal' })).toEqual([['berlin-2'], 1])
  expect(await found('berlin', { status: 'Offline' })).toEqual([[], 0])
  expect(await found('berlin', { page: 2, pageSize: 1 })).toEqual([['Berlin-1'], 2])
  expect(await found('rome')).toEqual([[], 0])
  expect((await found(' '))[1]).toBe(4)
  expect((await Cluster.list(await callerOf(), { ...firstPage, search: 'berlin' })).totalCount).toBe(0)
})

test('an organisation has as many sites as its list shows, and no more', async () => {
  const [caller, neighbour] = [await callerOf(), await callerOf()]
  const first = await Site.create(caller, { name: 'first' })
  await transact([patch(keys.siteCount(caller.organisationId), { add: { count: siteLimit - 2 } })])
  const wanted = ['a', 'b', 'c'].map((name) => Site.create(caller, { name }))
  const outcomes = await Promise.all(wanted.map(refusalOf))
  expect(outcomes.toSorted()).toEqual(['limit_reached', 'limit_reached', 'nothing was refused'])
  await Site.create(neighbour, { name: 'first' })
  await Site.remove(caller, first.id)
  expect(await refusalOf(Site.remove(caller, first.id))).toBe('site_not_found')
  await Site.create(caller, { name: 'first' })
  expect(await refusalOf(Site.create(caller, { name: 'last' }))).toBe('limit_reached')
  expect(await refusalBy('sites', 'POST /api/v1/sites', [caller, 'OrgAdmin'], { name: 'last' })).toBe('limit_reached')
})

test('a cluster moves between sites; a site with clusters stays', async () => {
  const caller = await callerOf()
  const [here, there] = await Promise.all([
    Site.create(caller, { name: 'here' }),
    Site.create(caller, { name: 'there' }),
  ])
  expect(await refusalOf(Site.create(caller, { name: 'HERE' }))).toBe('site_name_taken')
  expect(await refusalOf(Cluster.register(caller, { name: 'lost', type: 'Hypervisor', siteId: 'site_x' }))).toBe(
    'unknown_site',
  )
  const { id } = await Cluster.register(caller, { name: 'moving', type: 'Hypervisor', siteId: here.id })
  expect(await refusalOf(Site.remove(caller, here.id))).toBe('site_in_use')
  expect(await Cluster.update(caller, id, { siteId: there.id })).toMatchObject({ siteId: there.id })
  await Site.remove(caller, here.id)
  expect(await refusalOf(Cluster.update(caller, id, { siteId: here.id }))).toBe('unknown_site')
  expect(await Cluster.update(caller, id, { siteId: null })).not.toHaveProperty('siteId')
  await Site.remove(caller, there.id)
  expect(await Site.list(caller)).toEqual({ items: [] })
})

test('a removed cluster is gone for its owner and for its relay', async () => {
  const caller = await callerOf()
  const { cluster, request, beat } = await enrolledCluster(caller)
  await Cluster.remove(caller, cluster.id)
  expect(await refusalOf(Cluster.read(caller, cluster.id))).toBe('cluster_not_found')
  expect(await refusalOf(Cluster.remove(caller, cluster.id))).toBe('cluster_not_found')
  expect(await refusalOf(heartbeat(request(), beat))).toBe('unauthenticated')
  expect(await Cluster.list(caller, firstPage)).toMatchObject({ totalCount: 0, items: [] })
})
