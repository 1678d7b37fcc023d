import { beforeAll, expect, test } from 'vitest'
import * as Batch from '@platform/core/jobs/batches/batch'
import { batchIdOf } from '@platform/core/jobs/batches/id'
import { shiftClock } from '@platform/core/clock'
import * as Cluster from '@platform/core/clusters/cluster'
import * as keys from '@platform/core/db/keys'
import { create, get, remove } from '@platform/core/db/table'
import { transact } from '@platform/core/db/transact'
import * as Job from '@platform/core/jobs/job'
import { claim, complete } from '@platform/core/jobs/claim'
import { heartbeat } from '@platform/core/relays/heartbeat'
import { sweep } from '@platform/core/background/sweep'
import { refusalBy } from '../../../support/asked.ts'
import { justBefore } from '../../../support/store-calls.ts'
import { callerOf, enrolledCluster, refusalOf, started } from '../../../support/world.ts'
import { book, countersOf, expanded, jobsFor, manyClusters, rowsOf, tallyOf, tend } from '../../support/batches.ts'
import { completion, inboxOf, runJob, script } from '../../support/jobs.ts'

beforeAll(started)

test('a batch that is cancelled before its jobs stand in the table never reaches a relay', async () => {
  const caller = await callerOf()
  const world = await enrolledCluster(caller)
  const { batchId, jobIds } = await Batch.submit(caller, { jobs: jobsFor([world.cluster.id], 200) })
  expect(await Batch.cancel(caller, batchId)).toMatchObject({
    status: 'Cancelling',
    cancelRequestedAt: expect.any(String),
  })
  await Promise.all([tend(caller, batchId), tend(caller, batchId)])
  await book(caller)
  expect(await inboxOf(world.cluster.id)).toEqual([])
  expect(await Batch.read(caller, batchId)).toMatchObject({ status: 'Finished', counts: { cancelled: 200 } })
  expect(await Job.read(caller, jobIds[199] ?? '')).toMatchObject({
    status: 'Cancelled',
    statusReason: 'cancelled_by_user',
  })
  expect(await countersOf(caller, [world.cluster.id])).toEqual([[0, 0, 200]])
  expect(await refusalOf(Batch.cancel(caller, batchId))).toBe('batch_already_finished')
})

test('cancelling while jobs are expanded and claimed ends each of them once', async () => {
  const caller = await callerOf()
  const world = await enrolledCluster(caller)
  const { batchId, jobIds } = await Batch.submit(caller, { jobs: jobsFor([world.cluster.id], 150) })
  const claimed: string[] = []
  const claiming = async () => {
    for (const id of jobIds.slice(0, 40)) {
      if ((await refusalOf(claim(world.request(), id, undefined))) === 'nothing was refused') claimed.push(id)
    }
  }
  const cancelling = async () => {
    await Batch.cancel(caller, batchId)
    await tend(caller, batchId)
  }
  await Promise.all([tend(caller, batchId), claiming(), cancelling()])
  await tend(caller, batchId)
  const rows = await rowsOf(caller, jobIds)
  const running = rows.filter(({ status }) => status === 'Running')
  expect(running.map(({ id }) => id)).toEqual(claimed)
  expect(running.every(({ cancelRequestedAtMs }) => cancelRequestedAtMs !== undefined)).toBe(true)
  expect(tallyOf(rows)).toMatchObject({ queued: 0, running: claimed.length, cancelled: 150 - claimed.length })
  expect(await countersOf(caller, [world.cluster.id])).toEqual([[claimed.length, 0, 150]])
  expect(await inboxOf(world.cluster.id)).toEqual([])
  await book(caller)
  expect((await Batch.read(caller, batchId)).counts).toEqual(tallyOf(rows))
})

test('running jobs of a cancelled batch are asked to stop, and the batch ends with them', async () => {
  const caller = await callerOf()
  const world = await enrolledCluster(caller)
  const { batchId, jobIds } = await expanded(caller, { jobs: jobsFor([world.cluster.id], 5), maxConcurrency: 2 })
  const [confirmed = '', silent = ''] = jobIds
  const { leaseId } = await claim(world.request(), confirmed, undefined)
  await claim(world.request(), silent, undefined)
  await book(caller)
  await Batch.cancel(caller, batchId)
  await tend(caller, batchId)
  await book(caller)
  expect(await Batch.read(caller, batchId)).toMatchObject({
    status: 'Cancelling',
    counts: { running: 2, cancelled: 3, queued: 0 },
  })
  const { answer } = await heartbeat(world.request(), { ...world.beat, running: [confirmed, silent] })
  expect(answer.cancel).toEqual([confirmed, silent])
  await complete(world.request(), confirmed, { ...completion(world, leaseId, null), outcome: 'cancelled' })
  shiftClock(61_000)
  await sweep()
  await book(caller)
  expect(await Batch.read(caller, batchId)).toMatchObject({ status: 'Finished', counts: { running: 0, cancelled: 5 } })
  shiftClock(-61_000)
})

test('the failed and cancelled jobs of a finished batch run again in a new one, with the same limits', async () => {
  const caller = await callerOf()
  const world = await enrolledCluster(caller)
  const nodeIds = world.relay.nodes.map(({ id }) => id)
  const payloads = [{}, { timeoutSeconds: 7 }, { targetNodeIds: nodeIds }, { script: 'exit 3' }]
  const jobs = payloads.map((payload) => script(world.cluster.id, payload, { deliverWithinSeconds: 500 }))
  const first = await expanded(caller, { jobs, maxConcurrency: 2, maxErrors: 4 })
  expect(await refusalOf(Batch.retry(caller, first.batchId))).toBe('nothing_to_retry')
  await runJob(world, first.jobIds[0] ?? '')
  await runJob(world, first.jobIds[1] ?? '', 1)
  await Job.cancel(caller, first.jobIds[2] ?? '')
  await book(caller)
  await runJob(world, first.jobIds[3] ?? '', 3)
  await book(caller)
  const second = await Batch.retry(caller, first.batchId)
  expect(second.submittedCount).toBe(3)
  await tend(caller, second.batchId)
  const again = await Promise.all(second.jobIds.map((id) => Job.read(caller, id)))
  expect(again.map(({ payload }) => payload)).toEqual(jobs.slice(1).map(({ payload }) => payload))
  const rows = await rowsOf(caller, second.jobIds)
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
  const caller = await callerOf()
  const world = await enrolledCluster(caller)
  const targetNodeIds = world.relay.nodes.map(({ id }) => id)
  const { batchId, jobIds } = await expanded(caller, { jobs: jobsFor([world.cluster.id], 1, { targetNodeIds }) })
  await runJob(world, jobIds[0] ?? '', 1)
  await book(caller)
  const asked = () => refusalBy('jobs', `POST /api/v1/jobs/batch/${batchId}/retry`, [caller, 'OrgAdmin'])
  const of = [caller.organisationId, world.cluster.id] as const
  const nodes = await get(keys.nodes(...of))
  await transact([remove(keys.nodes(...of))])
  expect(await asked()).toBe('node_not_in_cluster')
  await transact([create(keys.nodes(...of), nodes ?? {})])
  const removed = justBefore(/TransactWrite/, () => transact([remove(keys.cluster(...of))]))
  expect([await asked(), removed()]).toEqual(['cluster_forbidden', true])
})

test('failed jobs of a removed cluster are left out of a retry, whether cleared away yet or not', async () => {
  const caller = await callerOf()
  const [gone, kept] = [await enrolledCluster(caller), await enrolledCluster(caller)]
  const { batchId, jobIds } = await expanded(caller, { jobs: jobsFor([gone.cluster.id, kept.cluster.id], 6) })
  const worlds = [gone, kept]
  for (const [index, id] of jobIds.entries()) await runJob(worlds[index % 2] ?? kept, id, 1)
  await book(caller)
  await Cluster.remove(caller, gone.cluster.id)
  const { submittedCount, jobIds: again } = await Batch.retry(caller, batchId)
  expect(submittedCount).toBe(3)
  await tend(caller, batchIdOf(again[0] ?? ''))
  expect((await rowsOf(caller, again)).map(({ clusterId }) => clusterId)).toEqual(Array(3).fill(kept.cluster.id))
  for (const id of again) await Job.cancel(caller, id)
  await book(caller)
  await Cluster.remove(caller, kept.cluster.id)
  expect(await refusalOf(Batch.retry(caller, batchId))).toBe('nothing_to_retry')
  await sweep()
  expect(await refusalOf(Batch.retry(caller, batchId))).toBe('nothing_to_retry')
})

test('a batch without failures, of another organisation or of nobody is not retried or cancelled', async () => {
  const caller = await callerOf()
  const world = await enrolledCluster(caller)
  const { batchId, jobIds } = await expanded(caller, { jobs: jobsFor([world.cluster.id], 1) })
  await runJob(world, jobIds[0] ?? '')
  await book(caller)
  expect(await refusalOf(Batch.retry(caller, batchId))).toBe('nothing_to_retry')
  for (const stranger of [await callerOf()]) {
    expect(await refusalOf(Batch.retry(stranger, batchId))).toBe('batch_not_found')
    expect(await refusalOf(Batch.cancel(stranger, batchId))).toBe('batch_not_found')
  }
  expect(await refusalOf(Batch.cancel(caller, '#'))).toBe('batch_not_found')
})

test('batches are listed newest first, on pages that never repeat one', async () => {
  const caller = await callerOf()
  const [clusterId = ''] = await manyClusters(caller, 1)
  const batchIds: string[] = []
  for (let count = 0; count < 25; count++) {
    shiftClock(1)
    batchIds.push((await Batch.submit(caller, { jobs: [script(clusterId)] })).batchId)
  }
  const pages = await Promise.all([1, 2, 3, 4].map((page) => Batch.list(caller, { page, pageSize: 10 })))
  expect(pages.flatMap(({ items }) => items.map(({ id }) => id))).toEqual(batchIds.toReversed())
  expect(pages.map(({ totalCount }) => totalCount)).toEqual([25, 25, 25, 25])
  expect((await Batch.list(await callerOf(), { page: 1, pageSize: 10 })).items).toEqual([])
})
