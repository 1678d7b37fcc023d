import { SQSClient } from '@aws-sdk/client-sqs'
import { sweep } from '@platform/core/background/sweep'
import * as Cluster from '@platform/core/clusters/cluster'
import { config } from '@platform/core/config'
import * as keys from '@platform/core/db/keys'
import { batchPut, update } from '@platform/core/db/table'
import { now } from '@platform/core/clock'
import * as Batch from '@platform/core/jobs/batches/batch'
import { complete } from '@platform/core/jobs/complete'
import { recordStartsAndEnds } from '@platform/core/jobs/recording'
import { claim } from '@platform/core/jobs/claim'
import * as Job from '@platform/core/jobs/job'
import { removeCluster } from '@platform/core/jobs/remove-cluster'
import { heartbeat } from '@platform/core/relays/heartbeat'
import { beforeAll, expect, test, vi } from 'vitest'
import { advanceClock } from '../../support/clock.ts'
import { bootstrapPlatform, enrolledCluster, expectError, newCaller } from '../../support/fixtures.ts'
import { jobsForClusters, readClusterCounters, runProjections, submitAndExpand } from '../support/batches.ts'
import { completionReport, dispatchedJob, type EnrolledCluster } from '../support/jobs.ts'
import { runBefore } from '../support/interleaving.ts'
import { delaysOfMessages, messagesSentBy } from '../support/messages.ts'
import { drainOutbox, readPendingEvents, readPendingRecords } from '../support/outbox.ts'
import { measureUsage } from '../support/usage.ts'

beforeAll(bootstrapPlatform)

let lastClaim = 0

/** Claims the waiting jobs of the cluster with a heartbeat. */
async function claimAll(enrolled: EnrolledCluster, change: object = {}) {
  const report = { ...enrolled.heartbeat, claimKey: `claim-key-${++lastClaim}`, ...change }
  return (await heartbeat(enrolled.request(), report)).claims ?? []
}

/** Starts a batch with one job for each of its clusters. */
async function runningBatch(clusterCount: number, settings: object = {}) {
  const caller = await newCaller()
  const clusters: EnrolledCluster[] = []
  while (clusters.length < clusterCount) clusters.push(await enrolledCluster(caller))
  const jobs = jobsForClusters(clusters.map(({ cluster }) => cluster.id))
  const { batchId, jobIds } = await submitAndExpand(caller, { jobs, ...settings })
  const leases: string[] = []
  for (const enrolled of clusters) leases.push((await claimAll(enrolled))[0]?.leaseId ?? '')
  await runProjections(caller)
  const end = async (index: number, exitCode = 0) => {
    const enrolled = clusters[index]!
    const report = completionReport(enrolled, leases[index]!, exitCode)
    return complete(enrolled.request(), jobIds[index]!, report)
  }
  const counters = () =>
    readClusterCounters(
      caller,
      clusters.map(({ cluster }) => cluster.id),
    )
  const record = (ids = jobIds) => recordStartsAndEnds(caller.organisationId, ids)
  /** Returns the ids of the batch's jobs whose ends the check of the batch enqueues. */
  const check = async () => {
    await update(keys.batch(caller.organisationId, batchId), { set: keys.dueIndexKeys(batchId, now()) })
    return (await jobsEnqueuedBy(sweep)).filter((id) => jobIds.includes(id)).toSorted()
  }
  return { caller, clusters, batchId, jobIds, end, counters, record, check }
}

/** Returns the ids of the jobs that the work enqueues. */
const jobsEnqueuedBy = async (work: () => Promise<unknown>): Promise<string[]> =>
  (await messagesSentBy(config.PLAT_QUEUE_EVENTS, work)).flatMap(({ jobs }) => jobs?.split(',') ?? [])

async function withUnavailableQueues(work: () => Promise<unknown>): Promise<void> {
  const send = vi.spyOn(SQSClient.prototype, 'send').mockRejectedValue(new Error('The queue is unavailable.'))
  try {
    await work()
  } finally {
    send.mockRestore()
  }
}

test('the end of a job of a batch writes only the job, and the ends of several jobs are recorded together and once', async () => {
  const { caller, batchId, jobIds, end, counters, record } = await runningBatch(3)
  const { usage } = await measureUsage(() => end(0))
  expect(usage.calls).toEqual(['BatchGetItem', 'UpdateItem'])
  await Promise.all([end(1), end(2)])
  expect((await Job.read(caller, jobIds[0]!)).status).toBe('Completed')
  expect(await counters()).toEqual([1, 2, 3].map(() => [1, 1, 1]))
  expect(await readPendingRecords(caller.organisationId)).toEqual([])
  await Promise.all(jobIds.map((id) => record([id])))
  expect(await readPendingRecords(caller.organisationId)).toHaveLength(1)
  await Promise.all([record(), record()])
  expect(await counters()).toEqual([1, 2, 3].map(() => [0, 0, 1]))
  for (const name of ['job.started', 'job.completed']) {
    const events = await readPendingEvents(caller, name)
    expect(events.map(({ subject }) => subject).toSorted()).toEqual(jobIds)
  }
  await drainOutbox(caller.organisationId)
  expect(await Batch.read(caller, batchId)).toMatchObject({ status: 'Finished', counts: { completed: 3 } })
})

test('records the other ends together if one of them is recorded already or has not happened', async () => {
  const { caller, end, jobIds, record, counters } = await runningBatch(4)
  await Promise.all([end(0), end(1), end(2)])
  await record(jobIds.slice(0, 1))
  await record()
  expect(await counters()).toEqual([
    [0, 0, 1],
    [0, 0, 1],
    [0, 0, 1],
    [1, 1, 1],
  ])
  expect(await readPendingEvents(caller, 'job.completed')).toHaveLength(3)
  // One record for the first end, one for the start of the job that still runs, and one for the other ends.
  expect(await readPendingRecords(caller.organisationId)).toHaveLength(3)
})

test('the end of a failed job, and of a job of a batch with `maxConcurrency`, is recorded in the same transaction', async () => {
  const failing = await runningBatch(1)
  await failing.end(0, 3)
  expect(await failing.counters()).toEqual([[0, 0, 1]])
  const limited = await runningBatch(1, { maxConcurrency: 1 })
  await limited.end(0)
  expect(await limited.counters()).toEqual([[0, 0, 1]])
  await failing.record()
  await limited.record()
  expect(await failing.counters()).toEqual([[0, 0, 1]])
  expect(await limited.counters()).toEqual([[0, 0, 1]])
})

test('a claim enqueues its job, and the end enqueues it again if the start was recorded in between', async () => {
  const caller = await newCaller()
  const enrolled = await enrolledCluster(caller)
  const { jobIds } = await submitAndExpand(caller, { jobs: jobsForClusters([enrolled.cluster.id]) })
  const report = { ...enrolled.heartbeat, claimKey: 'claim-key-0000' }
  const sendClaim = async () => void ({ claims } = await heartbeat(enrolled.request(), report))
  let claims: Awaited<ReturnType<typeof heartbeat>>['claims']
  expect(await jobsEnqueuedBy(sendClaim)).toEqual(jobIds)
  // The platform may have stopped before it sent the message.
  expect(await jobsEnqueuedBy(sendClaim)).toEqual(jobIds)
  await recordStartsAndEnds(caller.organisationId, jobIds)
  const completion = completionReport(enrolled, claims?.[0]?.leaseId ?? '')
  expect(await jobsEnqueuedBy(() => complete(enrolled.request(), jobIds[0]!, completion))).toEqual(jobIds)
  await recordStartsAndEnds(caller.organisationId, jobIds)
  const names = (await readPendingEvents(caller))
    .map(({ name }) => name)
    .filter((name) => /^job\.(started|completed)$/.test(name))
  expect(names).toEqual(['job.started', 'job.completed'])
})

test('the message about a claim is delayed by two seconds, or by one for a listed job of a batch', async () => {
  const caller = await newCaller()
  const enrolled = await enrolledCluster(caller)
  const delaysOfClaim = (claimKey: string) =>
    delaysOfMessages(config.PLAT_QUEUE_EVENTS, () => heartbeat(enrolled.request(), { ...enrolled.heartbeat, claimKey }))
  await dispatchedJob(caller, enrolled)
  expect(await delaysOfClaim('claim-key-0001')).toEqual([2])
  await submitAndExpand(caller, { jobs: jobsForClusters([enrolled.cluster.id]) })
  expect(await delaysOfClaim('claim-key-0002')).toEqual([1])
})

test('records the end of a job that ends while its start is being recorded', async () => {
  const { caller, jobIds, end, record, counters } = await runningBatch(2)
  runBefore(/^TransactWrite/, () => end(0))
  await record()
  expect(await counters()).toEqual([
    [0, 0, 1],
    [1, 1, 1],
  ])
  const startEvents = await readPendingEvents(caller, 'job.started')
  expect(startEvents.map(({ subject }) => subject).toSorted()).toEqual(jobIds)
  expect(await readPendingEvents(caller, 'job.completed')).toHaveLength(1)
})

test('a repeated report, a later heartbeat and the check of the batch enqueue an end that is not recorded', async () => {
  const { clusters, jobIds, end, record, counters, check } = await runningBatch(2)
  await Promise.all([end(0), end(1)])
  expect(await jobsEnqueuedBy(() => end(0))).toEqual([jobIds[0]])
  const beat = () => jobsEnqueuedBy(() => claimAll(clusters[0]!))
  expect([await beat(), await check()]).toEqual([[], []])
  advanceClock(31_000)
  expect([await beat(), await check()]).toEqual([[jobIds[0]], jobIds])
  await record()
  expect([await jobsEnqueuedBy(() => end(0)), await beat(), await check()]).toEqual([[], [], []])
  expect(await counters()).toEqual([
    [0, 0, 1],
    [0, 0, 1],
  ])
})

test.each([
  ['a batch with `maxErrors`', { maxErrors: 1 }, async () => undefined],
  ['a cancelled batch', {}, Batch.cancel],
] as const)('the check of %s enqueues an end that is not recorded', async (_, settings, prepare) => {
  const { caller, batchId, jobIds, end, check } = await runningBatch(2, settings)
  await end(0)
  await prepare(caller, batchId)
  advanceClock(31_000)
  expect(await check()).toEqual(jobIds.slice(0, 1))
})

test('the check of a batch enqueues an end that is not recorded, even if records of other jobs were removed', async () => {
  const { caller, clusters, jobIds, end, record, check } = await runningBatch(3)
  await end(0)
  await record()
  await drainOutbox(caller.organisationId)
  await removeCluster(caller, clusters[0]!.cluster.id)
  await sweep()
  await end(1)
  advanceClock(31_000)
  expect(await check()).toEqual(jobIds.slice(1, 2))
})

test('the retention of jobs records their ends before it removes them', async () => {
  const { caller, end, counters } = await runningBatch(1)
  const id = caller.organisationId
  await batchPut([{ ...keys.organisation(id), id, jobRetentionDays: 2 }])
  await end(0)
  // The first sweep after the clock was set forward removes nothing.
  advanceClock(3 * 86_400_000)
  await sweep()
  advanceClock(3_600_000)
  await sweep()
  expect(await counters()).toEqual([[0, 0, 0]])
  expect(await readPendingEvents(caller, 'job.completed')).toHaveLength(1)
})

test('a heartbeat without a claim key offers waiting jobs only, and enqueues an end that is not recorded', async () => {
  const { caller, clusters, jobIds, end } = await runningBatch(1)
  const [enrolled] = clusters as [EnrolledCluster]
  await end(0)
  const [nextId] = (await submitAndExpand(caller, { jobs: jobsForClusters([enrolled.cluster.id]) })).jobIds
  advanceClock(31_000)
  let offered: readonly string[] = []
  const beat = async () => {
    offered = (await heartbeat(enrolled.request(), { ...enrolled.heartbeat, freeSlots: 1 })).jobs
  }
  expect([await jobsEnqueuedBy(beat), offered]).toEqual([jobIds, [nextId]])
})

test('records a start and an end at once if the queue is unavailable', async () => {
  const caller = await newCaller()
  const enrolled = await enrolledCluster(caller)
  const { jobIds } = await submitAndExpand(caller, { jobs: jobsForClusters([enrolled.cluster.id]) })
  await withUnavailableQueues(async () => {
    const [job] = await claimAll(enrolled)
    expect(await readPendingEvents(caller, 'job.started')).toHaveLength(1)
    await complete(enrolled.request(), jobIds[0]!, completionReport(enrolled, job!.leaseId))
  })
  expect(await readClusterCounters(caller, [enrolled.cluster.id])).toEqual([[0, 0, 1]])
})

test('a cluster can be removed if its jobs have ended, even if the ends are not recorded', async () => {
  const { caller, clusters, batchId, end } = await runningBatch(2)
  await end(0)
  const [first, second] = clusters.map(({ cluster }) => cluster.id)
  await expectError(Cluster.remove(caller, first!), 'cluster_has_active_jobs')
  await expectError(removeCluster(caller, second!), 'cluster_has_active_jobs')
  await removeCluster(caller, first!)
  await expectError(removeCluster(caller, first!), 'cluster_not_found')
  await runProjections(caller)
  expect((await Batch.read(caller, batchId)).counts).toMatchObject({ completed: 1 })
})

test('a cluster lists three jobs of batches; further ones wait in its inbox', async () => {
  const caller = await newCaller()
  const enrolled = await enrolledCluster(caller)
  const clusterId = enrolled.cluster.id
  const jobIds: string[] = []
  while (jobIds.length < 4)
    jobIds.push(...(await submitAndExpand(caller, { jobs: jobsForClusters([clusterId]) })).jobIds)
  const listed = async () => [...((await Cluster.find(caller.organisationId, clusterId))?.listedBatchJobs ?? [])]
  expect((await listed()).toSorted()).toEqual(jobIds.slice(0, 3))
  expect(await claimAll(enrolled, { freeSlots: 3 })).toHaveLength(3)
  const [last] = await claimAll(enrolled, { running: jobIds.slice(0, 3) })
  expect([last?.jobId, (await listed()).length]).toEqual([jobIds[3], 3])
  await complete(enrolled.request(), jobIds[3]!, completionReport(enrolled, last!.leaseId))
  expect(await readClusterCounters(caller, [clusterId])).toEqual([[3, 3, 4]])
})

test('a claim in a separate request removes the job from the list, so that its end is recorded at once', async () => {
  const caller = await newCaller()
  const enrolled = await enrolledCluster(caller)
  const { jobIds } = await submitAndExpand(caller, { jobs: jobsForClusters([enrolled.cluster.id]) })
  let leaseId = ''
  const sendClaim = async () => void ({ leaseId } = await claim(enrolled.request(), jobIds[0]!, 'claim-key-0000'))
  // The platform may have stopped before it sent the message about the first claim.
  expect([await jobsEnqueuedBy(sendClaim), await jobsEnqueuedBy(sendClaim)]).toEqual([jobIds, jobIds])
  await complete(enrolled.request(), jobIds[0]!, completionReport(enrolled, leaseId))
  expect(await readClusterCounters(caller, [enrolled.cluster.id])).toEqual([[0, 0, 1]])
  // The message about the claim finds nothing to record.
  expect((await measureUsage(() => recordStartsAndEnds(caller.organisationId, jobIds))).usage.calls).toEqual([
    'BatchGetItem',
  ])
})

test('the event of an end has the time of the end and its relay, even if it is recorded later', async () => {
  const { caller, clusters, jobIds, end, record } = await runningBatch(1)
  const endedMs = now()
  await end(0)
  advanceClock(20_000)
  await record()
  const [event] = await readPendingEvents(caller, 'job.completed')
  expect([event?.subject, event?.actor]).toEqual([jobIds[0], { kind: 'relay', id: clusters[0]?.relay.relayId }])
  expect(event!.atMs! - endedMs).toBeLessThan(10_000)
})
