import { beforeAll, expect, test } from 'vitest'
import * as Batch from '@platform/core/jobs/batches/batch'
import { batchIdOf } from '@platform/core/jobs/batches/id'
import * as Cluster from '@platform/core/clusters/cluster'
import * as keys from '@platform/core/db/keys'
import { create, get, remove } from '@platform/core/db/table'
import { transact } from '@platform/core/db/transact'
import * as Job from '@platform/core/jobs/job'
import { claim } from '@platform/core/jobs/claim'
import { sweep } from '@platform/core/background/sweep'
import {
  newCaller,
  enrolledCluster,
  requestErrorCode,
  errorCodeOf,
  bootstrapPlatform,
  callerWithCluster,
  expectError,
} from '../../../support/fixtures.ts'
import { beforeCommand } from '../../../support/store-calls.ts'
import {
  runProjections,
  clusterCounters,
  submitAndExpand,
  jobsForClusters,
  jobRecords,
  countByStatus,
  advance,
} from '../../support/batches.ts'
import { inboxItems, runJob, scriptJob } from '../../support/jobs.ts'

beforeAll(bootstrapPlatform)

test('a batch that is cancelled before its jobs stand in the table never reaches a relay', async () => {
  const { caller, enrolled } = await callerWithCluster()
  const { batchId, jobIds } = await Batch.submit(caller, { jobs: jobsForClusters([enrolled.cluster.id], 200) })
  expect(await Batch.cancel(caller, batchId)).toMatchObject({
    status: 'Cancelling',
    cancelRequestedAt: expect.any(String),
  })
  await Promise.all([advance(caller, batchId), advance(caller, batchId)])
  await runProjections(caller)
  expect(await inboxItems(enrolled.cluster.id)).toEqual([])
  expect(await Batch.read(caller, batchId)).toMatchObject({ status: 'Finished', counts: { cancelled: 200 } })
  expect(await Job.read(caller, jobIds[199] ?? '')).toMatchObject({
    status: 'Cancelled',
    statusReason: 'cancelled_by_user',
  })
  expect(await clusterCounters(caller, [enrolled.cluster.id])).toEqual([[0, 0, 200]])
  await expectError(Batch.cancel(caller, batchId), 'batch_already_finished')
})

test('cancelling while jobs are expanded and claimed ends each of them once', async () => {
  const { caller, enrolled } = await callerWithCluster()
  const { batchId, jobIds } = await Batch.submit(caller, { jobs: jobsForClusters([enrolled.cluster.id], 150) })
  const claimed: string[] = []
  const claiming = async () => {
    for (const id of jobIds.slice(0, 40)) {
      if ((await errorCodeOf(claim(enrolled.request(), id, undefined))) === 'no error') claimed.push(id)
    }
  }
  const cancelling = async () => {
    await Batch.cancel(caller, batchId)
    await advance(caller, batchId)
  }
  await Promise.all([advance(caller, batchId), claiming(), cancelling()])
  await advance(caller, batchId)
  const rows = await jobRecords(caller, jobIds)
  const running = rows.filter(({ status }) => status === 'Running')
  expect(running.map(({ id }) => id)).toEqual(claimed)
  expect(running.every(({ cancelRequestedAtMs }) => cancelRequestedAtMs !== undefined)).toBe(true)
  expect(countByStatus(rows)).toMatchObject({ queued: 0, running: claimed.length, cancelled: 150 - claimed.length })
  expect(await clusterCounters(caller, [enrolled.cluster.id])).toEqual([[claimed.length, 0, 150]])
  expect(await inboxItems(enrolled.cluster.id)).toEqual([])
  await runProjections(caller)
  expect((await Batch.read(caller, batchId)).counts).toEqual(countByStatus(rows))
})

test('the failed and cancelled jobs of a finished batch run again in a new one, with the same limits', async () => {
  const { caller, enrolled } = await callerWithCluster()
  const nodeIds = enrolled.relay.nodes.map(({ id }) => id)
  const payloads = [{}, { timeoutSeconds: 7 }, { targetNodeIds: nodeIds }, { script: 'exit 3' }]
  const jobs = payloads.map((payload) => scriptJob(enrolled.cluster.id, payload, { deliverWithinSeconds: 500 }))
  const first = await submitAndExpand(caller, { jobs, maxConcurrency: 2, maxErrors: 4 })
  await expectError(Batch.retry(caller, first.batchId), 'nothing_to_retry')
  await runJob(enrolled, first.jobIds[0] ?? '')
  await runJob(enrolled, first.jobIds[1] ?? '', 1)
  await Job.cancel(caller, first.jobIds[2] ?? '')
  await runProjections(caller)
  await runJob(enrolled, first.jobIds[3] ?? '', 3)
  await runProjections(caller)
  const second = await Batch.retry(caller, first.batchId)
  expect(second.submittedCount).toBe(3)
  await advance(caller, second.batchId)
  const again = await Promise.all(second.jobIds.map((id) => Job.read(caller, id)))
  expect(again.map(({ payload }) => payload)).toEqual(jobs.slice(1).map(({ payload }) => payload))
  const rows = await jobRecords(caller, second.jobIds)
  expect(rows.map(({ timeoutSeconds, deliverWithinSeconds }) => [timeoutSeconds, deliverWithinSeconds])).toEqual([
    [7, 500],
    [3600, 500],
    [3600, 500],
  ])
  expect(await Batch.read(caller, second.batchId)).toMatchObject({
    retryOf: first.batchId,
    maxConcurrency: 2,
    maxErrors: 4,
  })
  expect(await Batch.read(caller, first.batchId)).toMatchObject({
    status: 'Finished',
    counts: { completed: 1, failed: 2, cancelled: 1 },
  })
})

test('a retry is refused as a whole where a node of it is gone, or a cluster that goes meanwhile', async () => {
  const { caller, enrolled } = await callerWithCluster()
  const targetNodeIds = enrolled.relay.nodes.map(({ id }) => id)
  const { batchId, jobIds } = await submitAndExpand(caller, {
    jobs: jobsForClusters([enrolled.cluster.id], 1, { targetNodeIds }),
  })
  await runJob(enrolled, jobIds[0] ?? '', 1)
  await runProjections(caller)
  const asked = () => requestErrorCode('jobs', `POST /api/v1/jobs/batch/${batchId}/retry`, [caller, 'OrgAdmin'])
  const of = [caller.organisationId, enrolled.cluster.id] as const
  const nodes = await get(keys.nodes(...of))
  await transact([remove(keys.nodes(...of))])
  expect(await asked()).toBe('node_not_in_cluster')
  await transact([create(keys.nodes(...of), nodes ?? {})])
  const removed = beforeCommand(/TransactWrite/, () => transact([remove(keys.cluster(...of))]))
  expect([await asked(), removed()]).toEqual(['cluster_forbidden', true])
})

test('failed jobs of a removed cluster are left out of a retry, whether cleared away yet or not', async () => {
  const caller = await newCaller()
  const [gone, kept] = [await enrolledCluster(caller), await enrolledCluster(caller)]
  const { batchId, jobIds } = await submitAndExpand(caller, {
    jobs: jobsForClusters([gone.cluster.id, kept.cluster.id], 6),
  })
  const enrolledClusters = [gone, kept]
  for (const [index, id] of jobIds.entries()) await runJob(enrolledClusters[index % 2] ?? kept, id, 1)
  await runProjections(caller)
  await Cluster.remove(caller, gone.cluster.id)
  const { submittedCount, jobIds: again } = await Batch.retry(caller, batchId)
  expect(submittedCount).toBe(3)
  await advance(caller, batchIdOf(again[0] ?? ''))
  expect((await jobRecords(caller, again)).map(({ clusterId }) => clusterId)).toEqual(Array(3).fill(kept.cluster.id))
  for (const id of again) await Job.cancel(caller, id)
  await runProjections(caller)
  await Cluster.remove(caller, kept.cluster.id)
  await expectError(Batch.retry(caller, batchId), 'nothing_to_retry')
  await sweep()
  await expectError(Batch.retry(caller, batchId), 'nothing_to_retry')
})

test('a batch without failures, of another organisation or of nobody is not retried or cancelled', async () => {
  const { caller, enrolled } = await callerWithCluster()
  const { batchId, jobIds } = await submitAndExpand(caller, { jobs: jobsForClusters([enrolled.cluster.id], 1) })
  await runJob(enrolled, jobIds[0] ?? '')
  await runProjections(caller)
  await expectError(Batch.retry(caller, batchId), 'nothing_to_retry')
  for (const stranger of [await newCaller()]) {
    await expectError(Batch.retry(stranger, batchId), 'batch_not_found')
    await expectError(Batch.cancel(stranger, batchId), 'batch_not_found')
  }
  await expectError(Batch.cancel(caller, '#'), 'batch_not_found')
})
