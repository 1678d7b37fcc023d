import { expect, test } from 'vitest'
import { now } from '@platform/core/clock'
import * as Cluster from '@platform/core/clusters/cluster'
import * as keys from '@platform/core/db/keys'
import { type Item, batchPut } from '@platform/core/db/table'
import { readHistory } from '@platform/core/dashboard/history'
import { historyProjection, bucketAt, bucketMs } from '@platform/core/dashboard/history-projection'
import { callsOf } from '../../support/store-calls.ts'
import { callerOf } from '../../support/world.ts'
import { settle, statusChanged, tell, waitingRecords } from '../support/books.ts'

const itemOf = (key: keys.Key, counts: object): Item => ({ ...key, ...counts })

test('any range is four calls; what changes no status is booked without one', async () => {
  const caller = await callerOf()
  const { organisationId } = caller
  expect(await callsOf(() => readHistory(caller, 1))).toBe(4)
  expect(await callsOf(() => readHistory(caller, 720))).toBe(4)
  await Cluster.register(caller, { name: 'one', type: 'Hypervisor' })
  const [record] = await waitingRecords(organisationId)
  const records = record ? [record] : []
  expect(await callsOf(async () => historyProjection.prepare?.(organisationId, records))).toBe(3)
  await settle(organisationId)
  await tell(caller, { audit: { action: 'a', resource: 'b' } })
  const others = await waitingRecords(organisationId)
  expect(await callsOf(async () => historyProjection.prepare?.(organisationId, others))).toBe(0)
  expect(await historyProjection.entries?.(organisationId, others)).toEqual([])
  await tell(caller, statusChanged('clus', 'Healthy', 'Offline'))
  expect(
    await callsOf(async () => historyProjection.prepare?.(organisationId, await waitingRecords(organisationId))),
  ).toBe(4)
})

test('the longest range at its fullest is one call for each of its queries', async () => {
  const caller = await callerOf()
  const last = bucketAt(now())
  const slots = Array.from({ length: 2880 }, (_, index) => last - index * bucketMs)
  const counts = {
    submitted: 1_000_000,
    completed: 1_000_000,
    failed: 1_000_000,
    cancelled: 1_000_000,
    ttl: 2_000_000_000,
  }
  const statuses = { Healthy: 100_000, Degraded: 100_000, Pending: 100_000, Offline: 100_000, revision: 100_000_000 }
  const { organisationId } = caller
  await batchPut(slots.map((slot) => itemOf(keys.jobHistory(organisationId, slot), counts)))
  await batchPut(slots.map((slot) => itemOf(keys.clusterHistory(organisationId, slot), statuses)))
  expect(await callsOf(() => readHistory(caller, 720))).toBe(4)
  const seen = (await readHistory(caller, 720)).points
  expect(seen[90]?.jobs?.completed).toBe(16_000_000)
})
