import { beforeAll, expect, test } from 'vitest'
import { shiftClock } from '@platform/core/clock'
import * as Cluster from '@platform/core/clusters/cluster'
import { goodbye, heartbeat } from '@platform/core/relays/heartbeat'
import { sweep } from '@platform/core/background/sweep'
import { type Caller } from '@platform/core/caller'
import { callerOf, enrolledCluster, refusalOf, started } from '../../support/world.ts'

beforeAll(started)

const statusOf = async (caller: Caller, id: string) => (await Cluster.read(caller, id)).status
const listed = async (caller: Caller, status: 'Healthy' | 'Degraded' | 'Offline') =>
  (await Cluster.list(caller, { status, page: 1, pageSize: 20 })).totalCount

test('silence turns a cluster Degraded, then Offline with unknown nodes, in reads and filters alike', async () => {
  const caller = await callerOf()
  const { cluster } = await enrolledCluster(caller)
  shiftClock(81_000)
  expect([await statusOf(caller, cluster.id), await listed(caller, 'Degraded')]).toEqual(['Degraded', 1])
  shiftClock(40_000)
  expect([await statusOf(caller, cluster.id), await listed(caller, 'Offline')]).toEqual(['Offline', 1])
  expect((await Cluster.read(caller, cluster.id)).nodes).toMatchObject([{ status: 'Unknown' }])
  shiftClock(-121_000)
})

test('a cluster comes back from Offline with its second beat, which is asked for at once', async () => {
  const caller = await callerOf()
  const { cluster, request, beat } = await enrolledCluster(caller)
  shiftClock(121_000)
  const first = await heartbeat(request(), beat)
  expect([await statusOf(caller, cluster.id), first.answer.heartbeatIntervalSeconds, first.idle]).toEqual([
    'Offline',
    1,
    false,
  ])
  const second = await heartbeat(request(), beat)
  expect([await statusOf(caller, cluster.id), second.answer.heartbeatIntervalSeconds, second.idle]).toEqual([
    'Healthy',
    30,
    true,
  ])
  shiftClock(-121_000)
})

test('a node that is not Online degrades its cluster; with none left it is Offline, and two beats bring it back', async () => {
  const caller = await callerOf()
  const { cluster, request, beat } = await enrolledCluster(caller, ['a', 'b'])
  const [a, b] = beat.nodes
  await heartbeat(request(), {
    ...beat,
    nodes: [
      { id: a?.id ?? '', status: 'Offline' },
      { id: b?.id ?? '', status: 'Online' },
    ],
  })
  expect(await Cluster.read(caller, cluster.id)).toMatchObject({
    status: 'Degraded',
    nodes: [{ status: 'Offline' }, { status: 'Online' }],
  })
  await heartbeat(request(), { ...beat, nodes: [] })
  expect(await statusOf(caller, cluster.id)).toBe('Offline')
  await heartbeat(request(), beat)
  expect(await statusOf(caller, cluster.id)).toBe('Offline')
  await heartbeat(request(), beat)
  expect(await statusOf(caller, cluster.id)).toBe('Healthy')
})

test('goodbye makes a cluster Offline at once', async () => {
  const caller = await callerOf()
  const { cluster, request, beat } = await enrolledCluster(caller)
  await goodbye(request(), { reason: 'maintenance' })
  expect(await Cluster.read(caller, cluster.id)).toMatchObject({ status: 'Offline', relay: { status: 'Disconnected' } })
  await heartbeat(request(), beat)
  await heartbeat(request(), beat)
  expect(await statusOf(caller, cluster.id)).toBe('Healthy')
})

test('a beat works once, even when it comes twice at the same moment', async () => {
  const { request, beat } = await enrolledCluster(await callerOf())
  const same = request()
  const codes = await Promise.all(Array.from({ length: 4 }, () => refusalOf(heartbeat(same, beat))))
  expect(codes.filter((code) => code === 'nothing was refused')).toHaveLength(1)
  expect(await refusalOf(heartbeat(same, beat))).toBe('unauthenticated')
})

test('many beats within one second each work, and none of them twice', async () => {
  const { request, beat } = await enrolledCluster(await callerOf())
  const requests = Array.from({ length: 12 }, () => request())
  for (const each of requests) expect(await refusalOf(heartbeat(each, beat))).toBe('nothing was refused')
  for (const each of requests) expect(await refusalOf(heartbeat(each, beat))).toBe('unauthenticated')
})

test('the sweep persists what silence has done, once, and then has nothing to do', async () => {
  const caller = await callerOf()
  const { cluster } = await enrolledCluster(caller)
  shiftClock(300_000)
  await Promise.all([sweep(), sweep()])
  const row = await Cluster.find(caller.organisationId, cluster.id)
  expect(row).toMatchObject({ status: 'Offline', dueAtMs: 0 })
  shiftClock(-300_000)
})
