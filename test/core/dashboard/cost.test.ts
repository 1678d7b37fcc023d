import { expect, test } from 'vitest'
import { now } from '@platform/core/clock'
import * as Cluster from '@platform/core/clusters/cluster'
import * as keys from '@platform/core/db/keys'
import { type Item, batchPut } from '@platform/core/db/table'
import { readHistory } from '@platform/core/dashboard/history'
import { historyProjection, bucketAt, bucketMs } from '@platform/core/dashboard/history-projection'
import { countStoreCalls } from '../../support/store-calls.ts'
import { newCaller } from '../../support/fixtures.ts'
import { drainOutbox, statusChangedEffect, commitEffects, pendingRecords } from '../support/outbox.ts'

const itemOf = (key: keys.Key, counts: object): Item => ({ ...key, ...counts })

test('any range is four calls; what changes no status is booked without one', async () => {
  const caller = await newCaller()
  const { organisationId } = caller
  expect(await countStoreCalls(() => readHistory(caller, 1))).toBe(4)
  expect(await countStoreCalls(() => readHistory(caller, 720))).toBe(4)
  await Cluster.register(caller, { name: 'one', type: 'Hypervisor' })
  const [record] = await pendingRecords(organisationId)
  const records = record ? [record] : []
  expect(await countStoreCalls(async () => historyProjection.beforeCommit?.(organisationId, records))).toBe(3)
  await drainOutbox(organisationId)
  await commitEffects(caller, { audit: { action: 'a', resource: 'b' } })
  const others = await pendingRecords(organisationId)
  expect(await countStoreCalls(async () => historyProjection.beforeCommit?.(organisationId, others))).toBe(0)
  expect(await historyProjection.writes?.(organisationId, others)).toEqual([])
  await commitEffects(caller, statusChangedEffect('clus', 'Healthy', 'Offline'))
  expect(
    await countStoreCalls(async () =>
      historyProjection.beforeCommit?.(organisationId, await pendingRecords(organisationId)),
    ),
  ).toBe(4)
})

test('the longest range at its fullest is one call for each of its queries', async () => {
  const caller = await newCaller()
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
  expect(await countStoreCalls(() => readHistory(caller, 720))).toBe(4)
  const seen = (await readHistory(caller, 720)).points
  expect(seen[90]?.jobs?.completed).toBe(16_000_000)
})
