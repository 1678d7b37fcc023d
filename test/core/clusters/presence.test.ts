import { beforeAll, expect, test } from 'vitest'
import { advanceClock } from '../../support/clock.ts'
import * as Cluster from '@platform/core/clusters/cluster'
import { heartbeat } from '@platform/core/relays/heartbeat'
import { sweep } from '@platform/core/background/sweep'
import { type Caller } from '@platform/core/caller'
import { newCaller, enrolledCluster, bootstrapPlatform } from '../../support/fixtures.ts'

beforeAll(bootstrapPlatform)

const statusOf = async (caller: Caller, id: string) => (await Cluster.read(caller, id)).status
const listed = async (caller: Caller, status: 'Healthy' | 'Degraded' | 'Offline') =>
  (await Cluster.list(caller, { status, page: 1, pageSize: 20 })).totalCount

test('silence turns a cluster Degraded, then Offline with unknown nodes, in reads and filters alike', async () => {
  const caller = await newCaller()
  const { cluster } = await enrolledCluster(caller)
  advanceClock(81_000)
  expect([await statusOf(caller, cluster.id), await listed(caller, 'Degraded')]).toEqual(['Degraded', 1])
  advanceClock(40_000)
  expect([await statusOf(caller, cluster.id), await listed(caller, 'Offline')]).toEqual(['Offline', 1])
  expect((await Cluster.read(caller, cluster.id)).nodes).toMatchObject([{ status: 'Unknown' }])
})

test('a cluster comes back from Offline with its second beat, which is asked for at once', async () => {
  const caller = await newCaller()
  const { cluster, request, heartbeat: beat } = await enrolledCluster(caller)
  advanceClock(121_000)
  const first = await heartbeat(request(), beat)
  expect([await statusOf(caller, cluster.id), first.response.heartbeatIntervalSeconds, first.isIdle]).toEqual([
    'Offline',
    1,
    false,
  ])
  const second = await heartbeat(request(), beat)
  expect([await statusOf(caller, cluster.id), second.response.heartbeatIntervalSeconds, second.isIdle]).toEqual([
    'Healthy',
    30,
    true,
  ])
})

test('the sweep persists what silence has done, once, and then has nothing to do', async () => {
  const caller = await newCaller()
  const { cluster } = await enrolledCluster(caller)
  advanceClock(300_000)
  await Promise.all([sweep(), sweep()])
  const row = await Cluster.find(caller.organisationId, cluster.id)
  expect(row).toMatchObject({ status: 'Offline', dueAtMs: 0 })
})
