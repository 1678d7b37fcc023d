import { sweep } from '@platform/core/background/sweep'
import type { Caller } from '@platform/core/caller'
import { now } from '@platform/core/clock'
import * as Cluster from '@platform/core/clusters/cluster'
import * as keys from '@platform/core/db/keys'
import { create, get, remove } from '@platform/core/db/table'
import { transact } from '@platform/core/db/transact'
import * as Batch from '@platform/core/jobs/batches/batch'
import { claim } from '@platform/core/jobs/claim'
import * as Job from '@platform/core/jobs/job'
import { beforeAll, expect, test } from 'vitest'
import { advanceClock } from '../../../support/clock.ts'
import {
  bootstrapPlatform,
  callerWithCluster,
  enrolledCluster,
  errorCodeOf,
  expectError,
  newCaller,
  requestErrorCode,
} from '../../../support/fixtures.ts'
import { beforeCommand } from '../../../support/store-calls.ts'
import {
  advance,
  clusterCounters,
  countByStatus,
  jobRecords,
  jobsForClusters,
  runProjections,
  submitAndExpand,
} from '../../support/batches.ts'
import { type EnrolledCluster, inboxItems, runJob, scriptJob } from '../../support/jobs.ts'

beforeAll(bootstrapPlatform)

test('cancels a batch before its jobs are stored', async () => {
  const { caller, enrolled } = await callerWithCluster()
  const clusterId = enrolled.cluster.id
  const { batchId, jobIds } = await Batch.submit(caller, { jobs: jobsForClusters([clusterId], 200) })
  const cancelling = { status: 'Cancelling', cancelRequestedAt: expect.any(String) }
  expect(await Batch.cancel(caller, batchId)).toMatchObject(cancelling)
  await Promise.all([advance(caller, batchId), advance(caller, batchId)])
  await runProjections(caller)
  expect(await inboxItems(clusterId)).toEqual([])
  expect(await Batch.read(caller, batchId)).toMatchObject({ status: 'Finished', counts: { cancelled: 200 } })
  const cancelled = { status: 'Cancelled', statusReason: 'cancelled_by_user' }
  expect(await Job.read(caller, jobIds[199] ?? '')).toMatchObject(cancelled)
  expect(await clusterCounters(caller, [clusterId])).toEqual([[0, 0, 200]])
  await expectError(Batch.cancel(caller, batchId), 'batch_already_finished')
  await expectError(Batch.cancel(caller, '#'), 'batch_not_found')
  await Cluster.remove(caller, clusterId)
})

test('cancelling during expansion and claims ends each job once', async () => {
  const { caller, enrolled } = await callerWithCluster()
  const clusterId = enrolled.cluster.id
  const { batchId, jobIds } = await Batch.submit(caller, { jobs: jobsForClusters([clusterId], 150) })
  const claimedIds: string[] = []
  const claimJobs = async () => {
    for (const id of jobIds.slice(0, 40)) {
      if ((await errorCodeOf(claim(enrolled.request(), id, undefined))) === 'no error') claimedIds.push(id)
    }
  }
  const cancelBatch = async () => {
    await Batch.cancel(caller, batchId)
    await advance(caller, batchId)
  }
  await Promise.all([advance(caller, batchId), claimJobs(), cancelBatch()])
  await advance(caller, batchId)
  const records = await jobRecords(caller, jobIds)
  const running = records.filter(({ status }) => status === 'Running')
  expect(running.map(({ id }) => id)).toEqual(claimedIds)
  for (const { cancelRequestedAtMs } of running) expect(cancelRequestedAtMs).toBeDefined()
  const runningCount = claimedIds.length
  const counts = countByStatus(records)
  expect(counts).toMatchObject({ queued: 0, running: runningCount, cancelled: 150 - runningCount })
  expect(await clusterCounters(caller, [clusterId])).toEqual([[runningCount, 0, 150]])
  expect(await inboxItems(clusterId)).toEqual([])
  await runProjections(caller)
  expect((await Batch.read(caller, batchId)).counts).toEqual(counts)
})

test('retries the failed and cancelled jobs of a finished batch with the same limits', async () => {
  const { caller, enrolled } = await callerWithCluster()
  const targetNodeIds = enrolled.relay.nodes.map(({ id }) => id)
  const payloads = [{}, { timeoutSeconds: 7 }, { targetNodeIds }, { script: 'exit 3' }]
  const jobs = payloads.map((payload) => scriptJob(enrolled.cluster.id, payload, { deliverWithinSeconds: 500 }))
  const limits = { maxConcurrency: 2, maxErrors: 4 }
  const { batchId, jobIds } = await submitAndExpand(caller, { jobs, ...limits })
  const [completed = '', failed = '', cancelled = '', alsoFailed = ''] = jobIds
  await expectError(Batch.retry(caller, batchId), 'nothing_to_retry')
  await runJob(enrolled, completed)
  await runJob(enrolled, failed, 1)
  await Job.cancel(caller, cancelled)
  await runProjections(caller)
  await runJob(enrolled, alsoFailed, 3)
  await runProjections(caller)
  const retry = await Batch.retry(caller, batchId)
  expect(retry.submittedCount).toBe(3)
  await advance(caller, retry.batchId)
  const retried = await Promise.all(retry.jobIds.map((id) => Job.read(caller, id)))
  expect(retried.map(({ payload }) => payload)).toEqual(jobs.slice(1).map(({ payload }) => payload))
  const records = await jobRecords(caller, retry.jobIds)
  expect(records.map(({ timeoutSeconds, deliverWithinSeconds }) => [timeoutSeconds, deliverWithinSeconds])).toEqual(
    [7, 3600, 3600].map((timeoutSeconds) => [timeoutSeconds, 500]),
  )
  expect(await Batch.read(caller, retry.batchId)).toMatchObject({ retryOf: batchId, ...limits })
  const counts = { completed: 1, failed: 2, cancelled: 1 }
  expect(await Batch.read(caller, batchId)).toMatchObject({ status: 'Finished', counts })
})

test('rejects a retry as a whole if a target node or a cluster was removed', async () => {
  const { caller, enrolled } = await callerWithCluster()
  const targetNodeIds = enrolled.relay.nodes.map(({ id }) => id)
  const jobs = jobsForClusters([enrolled.cluster.id], 1, { targetNodeIds })
  const { batchId, jobIds } = await submitAndExpand(caller, { jobs })
  await runJob(enrolled, jobIds[0] ?? '', 1)
  await runProjections(caller)
  const retry = () => requestErrorCode('jobs', `POST /api/v1/jobs/batch/${batchId}/retry`, [caller, 'OrgAdmin'])
  const cluster = [caller.organisationId, enrolled.cluster.id] as const
  const nodes = await get(keys.nodes(...cluster))
  await transact([remove(keys.nodes(...cluster))])
  expect(await retry()).toBe('node_not_in_cluster')
  await transact([create(keys.nodes(...cluster), nodes ?? {})])
  const isRemoved = beforeCommand(/TransactWrite/, () => transact([remove(keys.cluster(...cluster))]))
  expect([await retry(), isRemoved()]).toEqual(['cluster_forbidden', true])
})

test('a retry skips completed jobs and jobs of removed clusters', async () => {
  const caller = await newCaller()
  const [removed, kept] = [await enrolledCluster(caller), await enrolledCluster(caller)]
  const jobs = jobsForClusters([removed.cluster.id, kept.cluster.id], 6)
  const { batchId, jobIds } = await submitAndExpand(caller, { jobs })
  for (const [index, id] of jobIds.entries()) await runJob(index % 2 === 0 ? removed : kept, id, 1)
  await runProjections(caller)
  await Cluster.remove(caller, removed.cluster.id)
  const retry = await Batch.retry(caller, batchId)
  expect(retry.submittedCount).toBe(3)
  await advance(caller, retry.batchId)
  const records = await jobRecords(caller, retry.jobIds)
  expect(records.map(({ clusterId }) => clusterId)).toEqual(Array(3).fill(kept.cluster.id))
  for (const id of retry.jobIds) await runJob(kept, id)
  await runProjections(caller)
  await expectError(Batch.retry(caller, retry.batchId), 'nothing_to_retry')
  await Cluster.remove(caller, kept.cluster.id)
  await expectError(Batch.retry(caller, batchId), 'nothing_to_retry')
  await sweep()
  await expectError(Batch.retry(caller, batchId), 'nothing_to_retry')
})

/** Runs all waiting jobs round by round; returns the number of jobs per round. */
async function runAll(caller: Caller, clusters: readonly EnrolledCluster[]): Promise<number[]> {
  const rounds: number[] = []
  for (;;) {
    const inboxes = await Promise.all(clusters.map(({ cluster }) => inboxItems(cluster.id)))
    if (inboxes.flat().length === 0) return rounds
    rounds.push(inboxes.flat().length)
    for (const [index, enrolled] of clusters.entries()) {
      for (const id of inboxes[index] ?? []) await runJob(enrolled, id)
    }
    await runProjections(caller)
  }
}

test('maxConcurrency limits the jobs that wait or run, and all jobs run in the end', async () => {
  const caller = await newCaller()
  const clusters = [await enrolledCluster(caller), await enrolledCluster(caller)]
  const clusterIds = clusters.map(({ cluster }) => cluster.id)
  const { batchId } = await submitAndExpand(caller, { jobs: jobsForClusters(clusterIds, 50), maxConcurrency: 7 })
  expect(await runAll(caller, clusters)).toEqual([7, 7, 7, 7, 7, 7, 7, 1])
  const batch = { status: 'Finished', maxConcurrency: 7, counts: { completed: 50 } }
  expect(await Batch.read(caller, batchId)).toMatchObject(batch)
  expect(await clusterCounters(caller, clusterIds)).toEqual(clusterIds.map(() => [0, 0, 25]))
})

test('throttled jobs that end are skipped, and release no other job', async () => {
  const { caller, enrolled } = await callerWithCluster()
  const clusterId = enrolled.cluster.id
  const jobs = jobsForClusters([clusterId], 12)
  const { batchId, jobIds } = await submitAndExpand(caller, { jobs, maxConcurrency: 3 })
  // The next two throttled jobs, a later one, and a waiting one.
  for (const index of [3, 4, 9, 0]) {
    await Job.cancel(caller, jobIds[index] ?? '')
    await runProjections(caller)
    await advance(caller, batchId)
    expect((await inboxItems(clusterId)).length).toBeLessThanOrEqual(3)
  }
  expect(await inboxItems(clusterId)).toEqual([1, 2, 5].map((index) => jobIds[index]))
  expect(await runAll(caller, [enrolled])).toEqual([3, 3, 2])
  const counts = { completed: 8, cancelled: 4 }
  expect(await Batch.read(caller, batchId)).toMatchObject({ status: 'Finished', counts })
})

test('the delivery timeout of a throttled job starts at its release', async () => {
  const { caller, enrolled } = await callerWithCluster()
  const jobs = Array.from({ length: 3 }, () => scriptJob(enrolled.cluster.id, {}, { deliverWithinSeconds: 100 }))
  const { batchId, jobIds } = await submitAndExpand(caller, { jobs, maxConcurrency: 1 })
  const [first = '', second = ''] = jobIds
  await expectError(claim(enrolled.request(), second, undefined), 'job_not_claimable')
  advanceClock(101_000)
  await sweep()
  expect(await Job.read(caller, first)).toMatchObject({ status: 'Failed', statusReason: 'delivery_timeout' })
  await runProjections(caller)
  expect(await inboxItems(enrolled.cluster.id)).toEqual([second])
  const { expiresAt } = await Job.read(caller, second)
  expect(Date.parse(expiresAt)).toBeGreaterThan(now() + 90_000)
  advanceClock(50_000)
  await advance(caller, batchId)
  expect(await inboxItems(enrolled.cluster.id)).toEqual([second])
})

test('maxErrors 0 cancels the remaining jobs after the first failed job, not after a cancelled one', async () => {
  const { caller, enrolled } = await callerWithCluster()
  const limits = { maxErrors: 0, maxConcurrency: 2 }
  const { batchId, jobIds } = await submitAndExpand(caller, {
    jobs: jobsForClusters([enrolled.cluster.id], 9),
    ...limits,
  })
  await Job.cancel(caller, jobIds[0] ?? '')
  await runProjections(caller)
  await runJob(enrolled, jobIds[1] ?? '')
  await runProjections(caller)
  expect((await Batch.read(caller, batchId)).counts).toMatchObject({ queued: 7, completed: 1, cancelled: 1 })
  await runJob(enrolled, jobIds[2] ?? '', 9)
  await runProjections(caller)
  const counts = { completed: 1, failed: 1, cancelled: 7 }
  expect(await Batch.read(caller, batchId)).toMatchObject({ status: 'Finished', counts })
})
