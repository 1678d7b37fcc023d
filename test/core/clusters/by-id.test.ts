import { beforeAll, expect, test } from 'vitest'
import * as Cluster from '@platform/core/clusters/cluster'
import { newId } from '@platform/core/id'
import { callerOf, started } from '../../support/world.ts'

/** Clusters that are named: what shows many at once asks for them in one call. */

beforeAll(started)

const page = { page: 1, pageSize: 100 }

const register = async (caller: Awaited<ReturnType<typeof callerOf>>, name: string) =>
  (await Cluster.register(caller, { name, type: name === 'cloud' ? 'CloudLocal' : 'Hypervisor' })).id

test('clusters that are named are listed in that order, each once; those that are gone are left out', async () => {
  const caller = await callerOf()
  const [alpha, beta, gamma] = [
    await register(caller, 'alpha'),
    await register(caller, 'beta'),
    await register(caller, 'gamma'),
  ]
  await Cluster.remove(caller, beta)
  const ids = [gamma, beta, alpha, gamma, newId('clus')].join(',')
  const { items, totalCount } = await Cluster.list(caller, { ...page, ids })
  expect([items.map(({ name }) => name), totalCount]).toEqual([['gamma', 'alpha'], 2])
})

test('a cluster of another organisation is not there by its name either', async () => {
  const ours = await register(await callerOf(), 'ours')
  expect(await Cluster.list(await callerOf(), { ...page, ids: ours })).toMatchObject({ items: [], totalCount: 0 })
})

test('named clusters are narrowed down, and paged, as all others are', async () => {
  const caller = await callerOf()
  const ids = [await register(caller, 'cloud'), await register(caller, 'metal'), await register(caller, 'metal 2')]
  const list = (query: object) => Cluster.list(caller, { ...page, ids: ids.join(','), ...query })
  expect((await list({ type: 'CloudLocal' })).items.map(({ name }) => name)).toEqual(['cloud'])
  expect((await list({ search: 'METAL' })).items.map(({ name }) => name)).toEqual(['metal', 'metal 2'])
  const second = await list({ page: 2, pageSize: 2 })
  expect([second.items.map(({ name }) => name), second.totalCount]).toEqual([['metal 2'], 3])
})
