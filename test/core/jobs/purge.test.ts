import { sweep } from '@platform/core/background/sweep'
import type { Caller } from '@platform/core/caller'
import * as Cluster from '@platform/core/clusters/cluster'
import * as keys from '@platform/core/db/keys'
import { get, query } from '@platform/core/db/table'
import * as Batch from '@platform/core/jobs/batches/batch'
import { complete } from '@platform/core/jobs/complete'
import * as Job from '@platform/core/jobs/job'
import { list } from '@platform/core/jobs/list'
import { append } from '@platform/core/jobs/output'
import { beforeAll, expect, onTestFinished, test, vi } from 'vitest'
import { advanceClock } from '../../support/clock.ts'
import { bootstrapPlatform, enrolledCluster, newCaller } from '../../support/fixtures.ts'
import { onStoreCall, type StoreCall } from '../../support/store-calls.ts'
import { advance, jobsForClusters, runProjections, submitAndExpand } from '../support/batches.ts'
import { completionReport, dispatchedJob, runningJob } from '../support/jobs.ts'

beforeAll(bootstrapPlatform)

async function removedCluster(caller: Caller, jobCount: number): Promise<string> {
  const { id } = (await enrolledCluster(caller)).cluster
  const { batchId } = await submitAndExpand(caller, { jobs: jobsForClusters([id], jobCount) })
  await Batch.cancel(caller, batchId)
  await advance(caller, batchId)
  await runProjections(caller)
  await Cluster.remove(caller, id)
  return id
}

const countJobs = async (clusterId: string): Promise<number> =>
  (await query({ index: 'gsi1', pk: keys.clusterJobs(clusterId) })).items.length

/** Whether a call queries a page of jobs of these clusters. */
const isJobQuery = ({ input }: StoreCall, clusterIds: readonly string[]): boolean =>
  input.Limit !== undefined &&
  clusterIds.some((id) => keys.clusterJobs(id) === input.ExpressionAttributeValues?.[':pk'])

/** Stops the real clock, so that only the test advances time. */
function freezeClock(): void {
  vi.useFakeTimers({ toFake: ['Date'] })
  onTestFinished(() => void vi.useRealTimers())
}

test('one sweep purges more jobs of a removed cluster than fit into a transaction', async () => {
  const clusterId = await removedCluster(await newCaller(), 260)
  expect(await countJobs(clusterId)).toBe(260)
  freezeClock()
  await sweep()
  expect(await countJobs(clusterId)).toBe(0)
})

test('the sweep ends overdue jobs before it purges clusters', async () => {
  const caller = await newCaller()
  const jobId = await dispatchedJob(caller, await enrolledCluster(caller), {}, { deliverWithinSeconds: 60 })
  const clusterId = await removedCluster(caller, 3)
  advanceClock(61_000)
  const statuses: string[] = []
  using _ = onStoreCall({
    before: async (call) => {
      if (isJobQuery(call, [clusterId])) statuses.push((await Job.read(caller, jobId)).status)
    },
  })
  await sweep()
  expect(statuses).toEqual(['Failed'])
})

test('a sweep purges for a limited time, and the next one continues with the oldest cluster', async () => {
  const caller = await newCaller()
  const clusterIds: string[] = []
  for (let count = 0; count < 4; count++) {
    clusterIds.push(await removedCluster(caller, 60))
    advanceClock(10)
  }
  freezeClock()
  const counts = async () => (await Promise.all(clusterIds.map(countJobs))).toSorted((a, b) => a - b)
  using _ = onStoreCall({
    after: async (call) => {
      if (isJobQuery(call, clusterIds)) advanceClock(6000)
    },
  })
  await sweep()
  expect(await counts()).toEqual([10, 10, 10, 60])
  advanceClock(2000)
  await sweep()
  expect(await counts()).toEqual([0, 0, 10, 10])
})

test('removes purged jobs from lists and totals, and keeps jobs of other clusters', async () => {
  const caller = await newCaller()
  const [removed, kept] = [await enrolledCluster(caller), await enrolledCluster(caller)]
  const jobs = jobsForClusters([removed.cluster.id, kept.cluster.id], 120)
  const { batchId, jobIds } = await submitAndExpand(caller, { jobs })
  for (const id of jobIds.filter((_, index) => index % 2 === 0)) await Job.cancel(caller, id)
  await runProjections(caller)
  const listed = (filter: object) => list(caller, { page: 1, pageSize: 100, ...filter })
  expect((await listed({ status: 'Cancelled' })).totalCount).toBe(60)
  await Cluster.remove(caller, removed.cluster.id)
  for (let round = 0; round < 3; round++) {
    await Promise.all([sweep(), sweep()])
    advanceClock(31_000)
  }
  await runProjections(caller)
  const totals = await get(keys.jobTotals(caller.organisationId))
  expect(totals).toMatchObject({ total: 60, Queued: 60, Cancelled: 0 })
  expect(await listed({ status: 'Cancelled' })).toMatchObject({ items: [], totalCount: 0 })
  expect((await listed({})).totalCount).toBe(60)
  expect((await listed({ batchId })).totalCount).toBe(60)
  expect((await Batch.read(caller, batchId)).counts).toMatchObject({ queued: 60, cancelled: 60 })
})

test('purges all items of a job, including much output', async () => {
  const { caller, enrolled, jobId, leaseId } = await runningJob()
  const chunk = { leaseId, nodeId: 'node', stream: 'stdout' as const, data: 'x'.repeat(65_536) }
  for (let seq = 0; seq < 20; seq++) await append(enrolled.request(), jobId, { ...chunk, seq })
  await complete(enrolled.request(), jobId, completionReport(enrolled, leaseId))
  await Cluster.remove(caller, enrolled.cluster.id)
  await sweep()
  expect((await query({ pk: keys.job(caller.organisationId, jobId).pk })).items).toEqual([])
})
