import { History, historyPoints } from '@platform/contract/history'
import { sweep } from '@platform/core/background/sweep'
import type { Caller } from '@platform/core/caller'
import { now } from '@platform/core/clock'
import * as Cluster from '@platform/core/clusters/cluster'
import { readHistory } from '@platform/core/dashboard/history'
import { bucketAt, bucketMs, historyProjection } from '@platform/core/dashboard/history-projection'
import * as keys from '@platform/core/db/keys'
import { batchPut, get, patch, query } from '@platform/core/db/table'
import { transact } from '@platform/core/db/transact'
import * as Job from '@platform/core/jobs/job'
import { goodbye } from '@platform/core/relays/heartbeat'
import { beforeAll, expect, test } from 'vitest'
import { advanceClock } from '../../support/clock.ts'
import { bootstrapPlatform, callerWithCluster, enrolledCluster, newCaller } from '../../support/fixtures.ts'
import { beforeCommand, countStoreCalls } from '../../support/store-calls.ts'
import { dispatchedJob, runJob } from '../support/jobs.ts'
import { drainOutbox, pendingRecords } from '../support/outbox.ts'

beforeAll(bootstrapPlatform)

const hourMs = 3_600_000
const noClusters = { Healthy: 0, Degraded: 0, Pending: 0, Offline: 0 }
const noJobs = { submitted: 0, completed: 0, failed: 0, cancelled: 0 }

/** Advances the clock to the middle of a later bucket. */
const advanceBuckets = (count = 1): void => advanceClock(bucketAt(now()) + count * bucketMs + bucketMs / 2 - now())

const points = async (caller: Caller, hours = 24) => (await readHistory(caller, hours)).points
const clusterCounts = async (caller: Caller, hours?: number) =>
  (await points(caller, hours)).map(({ clusters }) => clusters?.byStatus)
const jobCounts = async (caller: Caller, hours?: number) => (await points(caller, hours)).map(({ jobs }) => jobs)
const register = (caller: Caller, name: string) => Cluster.register(caller, { name, type: 'Hypervisor' })
const project = async (organisationId: string) =>
  historyProjection.beforeCommit?.(organisationId, await pendingRecords(organisationId))

/** A caller with an enrolled cluster, without pending records, at the start of a bucket. */
async function callerWithEmptyOutbox() {
  const { caller, enrolled } = await callerWithCluster()
  await drainOutbox(caller.organisationId)
  advanceBuckets()
  return { caller, enrolled, organisationId: caller.organisationId }
}

test.each([
  [1, 15, 4],
  [24, 15, 96],
  [50, 15, 200],
  [51, 30, 102],
  [168, 60, 168],
  [201, 120, 101],
  [720, 240, 180],
])('%i hours have intervals of %i minutes, %i of them, up to now', async (hours, stepMinutes, count) => {
  const history = await readHistory(await newCaller(), hours)
  expect(History.parse(history)).toEqual(history)
  expect([history.stepMinutes, history.points.length]).toEqual([stepMinutes, count])
  expect(count).toBeLessThanOrEqual(historyPoints)
  const times = history.points.map(({ at }) => Date.parse(at))
  for (const [index, at] of times.entries()) expect(at - (times[0] ?? 0)).toBe(index * stepMinutes * 60_000)
  const last = times.at(-1) ?? 0
  expect(last).toBeLessThanOrEqual(now())
  expect(last + stepMinutes * 60_000).toBeGreaterThan(now())
})

test('each interval has the cluster counts at its end, and the last one the current counts', async () => {
  const caller = await newCaller()
  advanceBuckets()
  await register(caller, 'one')
  const two = await enrolledCluster(caller)
  await drainOutbox(caller.organisationId)
  advanceBuckets(3)
  await goodbye(two.request(), { reason: 'test' })
  await drainOutbox(caller.organisationId)
  advanceBuckets(2)
  await register(caller, 'three')
  const before = { ...noClusters, Pending: 1, Healthy: 1 }
  const after = { ...noClusters, Pending: 1, Offline: 1 }
  const expected = [undefined, undefined, before, before, before, after, after, { ...after, Pending: 2 }]
  expect(await clusterCounts(caller, 2)).toEqual(expected)
})

test('a snapshot stays valid until the next one and expires only after it', async () => {
  const caller = await newCaller()
  const { organisationId } = caller
  advanceBuckets()
  const first = keys.clusterHistory(organisationId, bucketAt(now()))
  await register(caller, 'one')
  await drainOutbox(organisationId)
  expect((await get(first))?.['ttl']).toBeUndefined()
  advanceClock(60 * 24 * hourMs)
  expect(new Set((await clusterCounts(caller, 720)).map((counts) => counts?.Pending))).toEqual(new Set([1]))
  const second = keys.clusterHistory(organisationId, bucketAt(now()))
  await register(await newCaller(organisationId), 'two')
  await drainOutbox(organisationId)
  expect(Number((await get(first))?.['ttl'])).toBeGreaterThan(now() / 1000 + 30 * 24 * 3600)
  expect((await get(second))?.['ttl']).toBeUndefined()
})

test('a late snapshot of older counts does not replace a newer one', async () => {
  const caller = await newCaller()
  const { organisationId } = caller
  advanceBuckets()
  await register(caller, 'one')
  // Another worker projects between the read and the write of this one.
  const isOvertaken = beforeCommand(/^Update/, async () => {
    await register(caller, 'two')
    await project(organisationId)
  })
  await project(organisationId)
  expect(isOvertaken()).toBe(true)
  const snapshot = await get(keys.clusterHistory(organisationId, bucketAt(now())))
  expect(snapshot).toMatchObject({ Pending: 2 })
})

test('repeated and reordered projections write the same snapshot', async () => {
  const caller = await newCaller()
  const { organisationId } = caller
  advanceBuckets()
  for (const name of ['one', 'two', 'three']) await register(caller, name)
  const records = await pendingRecords(organisationId)
  for (const record of [...records, ...records.toReversed()])
    await historyProjection.beforeCommit?.(organisationId, [record])
  const { items } = await query({ pk: keys.clusterHistory(organisationId, 0).pk })
  expect(items.map((item) => item['Pending'])).toEqual([3])
})

test('counts jobs once, in the intervals of their submission and end', async () => {
  const { caller, enrolled } = await callerWithEmptyOutbox()
  const jobIds = []
  for (let count = 0; count < 4; count++) jobIds.push(await dispatchedJob(caller, enrolled))
  advanceBuckets(2)
  const [completed = '', failed = '', cancelled = ''] = jobIds
  await runJob(enrolled, completed)
  await runJob(enrolled, failed, 1)
  await Job.cancel(caller, cancelled)
  advanceBuckets()
  // The time of a record counts, not that of its projection.
  await drainOutbox(caller.organisationId)
  await drainOutbox(caller.organisationId)
  const ended = { submitted: 0, completed: 1, failed: 1, cancelled: 1 }
  expect(await jobCounts(caller, 1)).toEqual([{ ...noJobs, submitted: 4 }, noJobs, ended, noJobs])
})

test('counts purged jobs', async () => {
  const { caller, enrolled, organisationId } = await callerWithEmptyOutbox()
  await runJob(enrolled, await dispatchedJob(caller, enrolled))
  await drainOutbox(organisationId)
  advanceBuckets()
  await Cluster.remove(caller, enrolled.cluster.id)
  await sweep()
  await drainOutbox(organisationId)
  expect(await get(keys.jobTotals(organisationId))).toMatchObject({ Completed: 0 })
  expect((await jobCounts(caller, 1)).slice(-2)).toEqual([{ ...noJobs, submitted: 1, completed: 1 }, noJobs])
})

test('a failed projection transaction counts no job', async () => {
  const { caller, enrolled, organisationId } = await callerWithEmptyOutbox()
  await dispatchedJob(caller, enrolled)
  const writes = (await historyProjection.writes?.(organisationId, await pendingRecords(organisationId))) ?? []
  expect(writes).toHaveLength(1)
  const failing = patch(keys.outbox(organisationId, 'missing'), { set: { x: 1 } })
  expect(await transact([...writes, failing])).toBeDefined()
  await drainOutbox(organisationId)
  expect((await jobCounts(caller, 1)).at(-1)).toEqual({ ...noJobs, submitted: 1 })
})

test('longer intervals add the jobs of their buckets and have the last snapshot', async () => {
  const { caller, enrolled } = await callerWithCluster()
  advanceClock(Math.ceil(now() / (4 * hourMs)) * 4 * hourMs - now() + bucketMs / 2)
  for (let count = 0; count < 3; count++) {
    await dispatchedJob(caller, enrolled)
    await register(caller, `cluster ${count}`)
    await drainOutbox(caller.organisationId)
    advanceBuckets()
  }
  advanceClock(4 * hourMs)
  const last = (await points(caller, 720)).slice(-2)
  expect(last.map(({ jobs }) => jobs?.submitted)).toEqual([3, 0])
  expect(last.map(({ clusters }) => clusters?.byStatus.Pending)).toEqual([3, 3])
})

test('returns the data of the own organisation that the caller may read', async () => {
  const { caller, enrolled } = await callerWithCluster()
  await dispatchedJob(caller, enrolled)
  await drainOutbox(caller.organisationId)
  const fieldsFor = async (...permissions: ('clusters:read' | 'jobs:read')[]) =>
    Object.keys((await points({ ...caller, permissions: new Set(permissions) }, 1)).at(-1) ?? {})
  expect(await fieldsFor()).toEqual(['at'])
  expect(await fieldsFor('jobs:read')).toEqual(['at', 'jobs'])
  expect(await fieldsFor('clusters:read')).toEqual(['at', 'clusters'])
  const otherTenant = (await points(await newCaller(), 1)).at(-1)
  expect(otherTenant).toMatchObject({ clusters: { byStatus: noClusters }, jobs: noJobs })
})

test('reads a full longest range in four calls', async () => {
  const caller = await newCaller()
  const { organisationId } = caller
  const buckets = Array.from({ length: 2880 }, (_, index) => bucketAt(now()) - index * bucketMs)
  const million = 1_000_000
  const jobs = { submitted: million, completed: million, failed: million, cancelled: million, ttl: 2_000_000_000 }
  const clusters = { Healthy: 100_000, Degraded: 100_000, Pending: 100_000, Offline: 100_000, revision: 100 * million }
  await batchPut(buckets.map((bucket) => ({ ...keys.jobHistory(organisationId, bucket), ...jobs })))
  await batchPut(buckets.map((bucket) => ({ ...keys.clusterHistory(organisationId, bucket), ...clusters })))
  expect(await countStoreCalls(() => readHistory(caller, 720))).toBe(4)
  expect((await points(caller, 720))[90]?.jobs?.completed).toBe(16 * million)
})
