import { sweep } from '@platform/core/background/sweep'
import type { Caller } from '@platform/core/caller'
import { now } from '@platform/core/clock'
import * as Cluster from '@platform/core/clusters/cluster'
import { config } from '@platform/core/config'
import * as keys from '@platform/core/db/keys'
import { batchPut, get, getMany, query, update } from '@platform/core/db/table'
import { newId } from '@platform/core/id'
import * as Batch from '@platform/core/jobs/batches/batch'
import { cancelConfirmMs } from '@platform/core/jobs/cancel'
import { claim, nextCheckWhileRunning, renewLease } from '@platform/core/jobs/claim'
import { complete } from '@platform/core/jobs/complete'
import { enforceDeadline } from '@platform/core/jobs/deadlines'
import * as Job from '@platform/core/jobs/job'
import { list } from '@platform/core/jobs/list'
import { append, readOutput } from '@platform/core/jobs/output'
import { enroll, issue } from '@platform/core/relays/enrollment'
import { heartbeat } from '@platform/core/relays/heartbeat'
import { beforeAll, expect, onTestFinished, test, vi } from 'vitest'
import * as batchesDeadLetterConsumer from '../../../functions/queue/batches-dead-letter.ts'
import * as batchesConsumer from '../../../functions/queue/batches.ts'
import { advanceClock } from '../../support/clock.ts'
import {
  bootstrapPlatform,
  callerWithCluster,
  enrolledCluster,
  enrollRequest,
  errorCodeOf,
  expectError,
  newCaller,
} from '../../support/fixtures.ts'
import { onStoreCall, type StoreCall } from '../../support/store-calls.ts'
import {
  advance,
  countByStatus,
  readJobRecords,
  jobsForClusters,
  runProjections,
  storeClusters,
  submitAndExpand,
} from '../support/batches.ts'
import {
  completionReport,
  dispatchedJob,
  readInboxItems,
  readJobCounters,
  outputChunk,
  runningJob,
  scriptJob,
  waitingJob,
} from '../support/jobs.ts'
import { receiveMessages } from '../support/messages.ts'

beforeAll(bootstrapPlatform)

const dueTimeOf = async (key: keys.Key) => keys.dueMsOf((await get(key))?.['duesk'] as string | undefined)
const makeDue = async (key: keys.Key, jobId: string) => update(key, { set: keys.dueIndexKeys(jobId, now()) })

async function passMinutes(count: number): Promise<void> {
  for (let minute = 0; minute < count; minute++) {
    advanceClock(60_000)
    await sweep()
  }
}

test('checks a queued job again at its delivery timeout', async () => {
  const { jobId, key, record } = await waitingJob()
  await makeDue(key, jobId)
  await enforceDeadline(await record())
  expect(await dueTimeOf(key)).toBe((await record()).expiresAtMs)
})

test('schedules the next check of a running job, unless its lease is renewed concurrently', async () => {
  const { jobId, key, record } = await runningJob()
  await makeDue(key, jobId)
  await enforceDeadline(await record())
  expect(await dueTimeOf(key)).toBe(nextCheckWhileRunning(await record(), cancelConfirmMs))

  const staleJob = await record()
  advanceClock(200_000)
  await renewLease(staleJob)
  await makeDue(key, jobId)
  const dueMs = await dueTimeOf(key)
  await enforceDeadline(staleJob)
  expect(await dueTimeOf(key)).toBe(dueMs)
})

test('removes an ended job from the due index', async () => {
  const { caller, jobId, key, record } = await waitingJob()
  await Job.cancel(caller, jobId)
  await makeDue(key, jobId)
  await enforceDeadline(await record())
  expect([(await record()).status, await dueTimeOf(key)]).toEqual(['Cancelled', 0])
})

test('heartbeats and output request cancellation, and the sweep cancels a job without confirmation', async () => {
  const { caller, enrolled, jobId, leaseId } = await runningJob()
  await Job.cancel(caller, jobId)
  const response = await heartbeat(enrolled.request(), { ...enrolled.heartbeat, running: [jobId] })
  expect(response.cancel).toEqual([jobId])
  expect(await append(enrolled.request(), jobId, outputChunk(leaseId, 0, 'x'))).toMatchObject({ cancel: true })
  advanceClock(61_000)
  await sweep()
  expect(await Job.read(caller, jobId)).toMatchObject({ status: 'Cancelled', statusReason: 'cancelled_by_user' })
  const report = completionReport(enrolled, leaseId)
  await expectError(complete(enrolled.request(), jobId, report), 'job_already_finished')
  const lateResult = { outcome: 'exited', exitCode: 0 }
  expect(await Job.read(caller, jobId)).toMatchObject({ status: 'Cancelled', lateResult })
  expect(await readJobCounters(caller, enrolled)).toEqual([0, 0])
})

test('the sweep fails jobs that no relay has claimed in time', async () => {
  const { caller, enrolled, jobId } = await waitingJob({}, { deliverWithinSeconds: 60 })
  const undispatchedJob = await Job.submit(caller, scriptJob(enrolled.cluster.id, {}, { deliverWithinSeconds: 60 }))
  advanceClock(61_000)
  await sweep()
  for (const id of [jobId, undispatchedJob.id]) {
    expect(await Job.read(caller, id)).toMatchObject({ status: 'Failed', statusReason: 'delivery_timeout' })
  }
  expect(await readJobCounters(caller, enrolled)).toEqual([0, 0])
})

test('a heartbeat renews the leases of hundreds of jobs', async () => {
  const { caller, enrolled, key } = await runningJob()
  const item = await get(key)
  const jobIds = Array.from({ length: 250 }, () => newId('job'))
  const jobKeys = jobIds.map((id) => keys.job(caller.organisationId, id))
  await batchPut(jobIds.map((id, index) => ({ ...item, ...jobKeys[index]!, id })))
  advanceClock(300_000)
  const unknownId = newId('job')
  const report = { ...enrolled.heartbeat, running: [...jobIds, unknownId] }
  expect((await heartbeat(enrolled.request(), report)).cancel).toEqual([unknownId])
  const renewedJobs = (await getMany(jobKeys)).filter(
    (job) => Number(job?.['leaseRenewedAtMs']) > Number(item?.['leaseRenewedAtMs']),
  )
  expect(renewedJobs).toHaveLength(jobIds.length)
})

test('the sweep fails jobs whose relay has not reported for 600 seconds', async () => {
  const { caller, enrolled, jobId: reportedId } = await runningJob()
  const lostId = await dispatchedJob(caller, enrolled)
  await claim(enrolled.request(), lostId, undefined)
  await passMinutes(5)
  await heartbeat(enrolled.request(), { ...enrolled.heartbeat, running: [reportedId] })
  await passMinutes(6)
  expect(await Job.read(caller, reportedId)).toMatchObject({ status: 'Running' })
  expect(await Job.read(caller, lostId)).toMatchObject({ status: 'Failed', statusReason: 'lease_lost' })
})

test.each([
  ['30 minutes without sweeps', 30],
  ['a day without sweeps', 24 * 60],
  ['the clock was set back by 30 minutes', -30],
  ['the clock was set back by a day', -24 * 60],
])('after %s, a job of a silent relay ends ten minutes later', async (_, minutes) => {
  const { caller, jobId } = await runningJob()
  await sweep()
  advanceClock(minutes * 60_000)
  await passMinutes(9)
  expect(await Job.read(caller, jobId)).toMatchObject({ status: 'Running' })
  await passMinutes(3)
  expect(await Job.read(caller, jobId)).toMatchObject({ status: 'Failed', statusReason: 'lease_lost' })
})

test('after the clock was set back, a queued job keeps the length of its delivery timeout', async () => {
  const { caller, jobId } = await waitingJob({}, { deliverWithinSeconds: 300 })
  await sweep()
  advanceClock(-30 * 60_000)
  await passMinutes(4)
  expect(await Job.read(caller, jobId)).toMatchObject({ status: 'Queued' })
  await passMinutes(3)
  expect(await Job.read(caller, jobId)).toMatchObject({ status: 'Failed', statusReason: 'delivery_timeout' })
})

test('the sweep fails a job that exceeds its time limit by a minute', async () => {
  const { caller, jobId } = await runningJob({ timeoutSeconds: 5 })
  await sweep()
  advanceClock(66_000)
  await sweep()
  expect(await Job.read(caller, jobId)).toMatchObject({ status: 'Failed', statusReason: 'execution_timeout' })
})

const reasonsOf = async (caller: Caller, jobIds: readonly string[]) =>
  (await readJobRecords(caller, jobIds)).map(({ statusReason }) => statusReason)

test('the sweep of a batch enforces the deadlines of its jobs, which have no due time', async () => {
  const { caller, enrolled } = await callerWithCluster()
  const clusterId = enrolled.cluster.id
  const jobs = [
    scriptJob(clusterId, {}, { deliverWithinSeconds: 60 }),
    scriptJob(clusterId, { timeoutSeconds: 5 }),
    scriptJob(clusterId),
  ]
  const { batchId, jobIds } = await submitAndExpand(caller, { jobs })
  await passMinutes(2)
  expect(await reasonsOf(caller, jobIds)).toEqual(['delivery_timeout', undefined, undefined])
  for (const jobId of jobIds.slice(1)) await claim(enrolled.request(), jobId, undefined)
  for (const { duesk } of await readJobRecords(caller, jobIds)) expect(duesk).toBeUndefined()
  await passMinutes(2)
  expect(await reasonsOf(caller, jobIds)).toEqual(['delivery_timeout', 'execution_timeout', undefined])
  await passMinutes(7)
  expect(await reasonsOf(caller, jobIds)).toEqual(['delivery_timeout', 'execution_timeout', undefined])
  await passMinutes(2)
  expect(await reasonsOf(caller, jobIds)).toEqual(['delivery_timeout', 'execution_timeout', 'lease_lost'])
  await runProjections(caller)
  expect(await dueTimeOf(keys.batch(caller.organisationId, batchId))).toBe(0)
})

test('the delivery timeout of a throttled job starts at its release, also after the clock was set back', async () => {
  const { caller, enrolled } = await callerWithCluster()
  const jobs = Array.from({ length: 2 }, () => scriptJob(enrolled.cluster.id, {}, { deliverWithinSeconds: 90 }))
  const { jobIds } = await submitAndExpand(caller, { jobs, maxConcurrency: 1 })
  await passMinutes(2)
  await runProjections(caller)
  expect(await reasonsOf(caller, jobIds)).toEqual(['delivery_timeout', undefined])
  advanceClock(-30 * 60_000)
  await passMinutes(1)
  expect(await reasonsOf(caller, jobIds)).toEqual(['delivery_timeout', undefined])
  await passMinutes(2)
  expect(await reasonsOf(caller, jobIds)).toEqual(['delivery_timeout', 'delivery_timeout'])
})

test('a replaced relay can neither claim jobs, append output nor complete its job', async () => {
  const { caller, enrolled, jobId, leaseId } = await runningJob()
  const waitingId = await dispatchedJob(caller, enrolled)
  const { enrollmentToken } = await issue(caller, enrolled.cluster.id)
  await enroll(enrollRequest(enrollmentToken))
  const calls = [
    claim(enrolled.request(), jobId, 'key'),
    claim(enrolled.request(), waitingId, 'other'),
    append(enrolled.request(), jobId, outputChunk(leaseId, 0, 'x')),
    complete(enrolled.request(), jobId, completionReport(enrolled, leaseId)),
  ]
  for (const code of await Promise.all(calls.map(errorCodeOf))) expect(code).toBe('relay_revoked')
})

const queueEvent = (message: object) => ({ Records: [{ messageId: 'message', body: JSON.stringify(message) }] })
const success = { batchItemFailures: [] }
const failure = { batchItemFailures: [{ itemIdentifier: 'message' }] }

/** Sets the counter of waiting jobs. Dispatching to the cluster fails while the counter is not a number. */
const setWaitingJobs = ({ organisationId }: Caller, clusterId: string, waitingJobs: unknown) =>
  update(keys.cluster(organisationId, clusterId), { set: { waitingJobs } })

async function submittedJob() {
  const caller = await newCaller()
  const { organisationId } = caller
  const [clusterId = ''] = await storeClusters(caller, 1)
  const { id: jobId } = await Job.submit(caller, scriptJob(clusterId))
  return { caller, organisationId, clusterId, jobId, message: queueEvent({ organisationId, jobId }) }
}

test('fails the jobs of a dead-lettered batch that were not expanded', async () => {
  const caller = await newCaller()
  const { organisationId } = caller
  const [goodId = '', badId = ''] = await storeClusters(caller, 2)
  const jobs = [...jobsForClusters([goodId], 60), ...jobsForClusters([badId], 60)]
  const { batchId, jobIds } = await Batch.submit(caller, { jobs, maxConcurrency: 100 })
  const message = queueEvent({ organisationId, batchId })
  await setWaitingJobs(caller, badId, 'invalid')
  expect(await batchesConsumer.handler(message)).toEqual(failure)
  const expandedCount = (await readJobRecords(caller, jobIds)).length
  expect(expandedCount).toBeGreaterThan(0)
  for (let round = 0; round < 2; round++) expect(await batchesDeadLetterConsumer.handler(message)).toEqual(success)
  await runProjections(caller)
  const records = await readJobRecords(caller, jobIds)
  expect(countByStatus(records)).toMatchObject({ queued: expandedCount, failed: 120 - expandedCount })
  for (const job of records.slice(expandedCount)) expect(job.statusReason).toBe('dead_lettered')
  expect(await readInboxItems(goodId)).toHaveLength(expandedCount)
  expect((await Batch.read(caller, batchId)).counts).toEqual(countByStatus(records))
  await setWaitingJobs(caller, badId, 0)
  await Cluster.remove(caller, badId).catch(() => undefined)
  expect((await Cluster.find(organisationId, badId))?.activeJobs ?? 0).toBe(0)
})

test('the sweep re-enqueues batches with lost messages until they are done', async () => {
  const { caller, organisationId, clusterId } = await submittedJob()
  const { batchId } = await Batch.submit(caller, { jobs: [scriptJob(clusterId)] })
  const message = queueEvent({ organisationId, batchId })
  const batchMessages = () => receiveMessages(config.PLAT_QUEUE_BATCHES)
  await batchMessages()
  advanceClock(31_000)
  await sweep()
  expect(await batchMessages()).toContainEqual({ organisationId, batchId })
  await batchesConsumer.handler(message)
  await Batch.cancel(caller, batchId)
  await batchesConsumer.handler(message)
  await runProjections(caller)
  await batchMessages()
  advanceClock(300_000)
  await sweep()
  expect(await batchMessages()).not.toContainEqual({ organisationId, batchId })
})

async function removedCluster(caller: Caller, jobCount: number): Promise<string> {
  const { id } = (await enrolledCluster(caller)).cluster
  const { batchId } = await submitAndExpand(caller, { jobs: jobsForClusters([id], jobCount) })
  await Batch.cancel(caller, batchId)
  await advance(caller, batchId)
  await runProjections(caller)
  await Cluster.remove(caller, id)
  // A purge starts 45 seconds after the removal.
  advanceClock(45_000)
  return id
}

const countJobs = async (clusterId: string): Promise<number> =>
  (await query({ index: 'gsi1', pk: keys.clusterJobs(clusterId) })).items.length

const isJobQuery = ({ input }: StoreCall, clusterIds: readonly string[]): boolean =>
  input.Limit !== undefined &&
  clusterIds.some((id) => keys.clusterJobs(id) === input.ExpressionAttributeValues?.[':pk'])

/** Stops the real clock, so that only the test advances time. */
function freezeClock(): void {
  vi.useFakeTimers({ toFake: ['Date', 'performance'] })
  onTestFinished(() => void vi.useRealTimers())
}

test('hides the jobs of a removed cluster before the sweep purges them', async () => {
  const caller = await newCaller()
  const [removedCluster, keptCluster] = [await enrolledCluster(caller), await enrolledCluster(caller)]
  const { batchId, jobIds } = await submitAndExpand(caller, {
    jobs: jobsForClusters([removedCluster.cluster.id, keptCluster.cluster.id], 4),
  })
  for (const id of jobIds) await Job.cancel(caller, id)
  await runProjections(caller)
  await Cluster.remove(caller, removedCluster.cluster.id)
  for (const [index, id] of jobIds.entries()) {
    const isVisible = index % 2 === 1
    await expectError(Job.read(caller, id), isVisible ? 'no error' : 'job_not_found')
    await expectError(readOutput(caller, id, 0), isVisible ? 'no error' : 'job_not_found')
    await expectError(Job.cancel(caller, id), isVisible ? 'job_already_finished' : 'job_not_found')
  }
  const keptIds = jobIds.filter((_, index) => index % 2 === 1).toReversed()
  for (const filter of [{}, { status: 'Cancelled' }, { type: 'InvokeScript' }, { batchId }] as const) {
    const { items, totalCount } = await list(caller, { page: 1, pageSize: 100, ...filter })
    expect([items.map(({ id }) => id), totalCount]).toEqual([keptIds, 2])
  }
  for (const filter of [{}, { status: 'Cancelled' }, { type: 'InvokeScript' }] as const) {
    for (const page of [1, 2, 3, 4]) {
      const { totalCount } = await list(caller, { page, pageSize: 2, ...filter })
      expect([page, totalCount]).toEqual([page, 2])
    }
  }
  const clusterQuery = { clusterId: removedCluster.cluster.id, page: 1, pageSize: 100 }
  expect(await list(caller, clusterQuery)).toMatchObject({ items: [], totalCount: 0 })
  for (let round = 0; round < 4; round++) {
    await sweep()
    advanceClock(31_000)
  }
  expect(await get(keys.removedClusters(caller.organisationId))).toMatchObject({ count: 0 })
  await runProjections(caller)
  const noHiddenJobs = { 'hidden total': 0, 'hidden Cancelled': 0 }
  expect(await get(keys.organisationCounts(caller.organisationId))).toMatchObject({ total: 2, ...noHiddenJobs })
})

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
  const readCounts = async () => (await Promise.all(clusterIds.map(countJobs))).toSorted((a, b) => a - b)
  using _ = onStoreCall({
    after: async (call) => {
      if (isJobQuery(call, clusterIds)) advanceClock(6000)
    },
  })
  await sweep()
  expect(await readCounts()).toEqual([10, 10, 10, 60])
  advanceClock(2000)
  await sweep()
  expect(await readCounts()).toEqual([0, 0, 10, 10])
})

test('removes purged jobs from lists and totals, and keeps jobs of other clusters', async () => {
  const caller = await newCaller()
  const [removedCluster, keptCluster] = [await enrolledCluster(caller), await enrolledCluster(caller)]
  const jobs = jobsForClusters([removedCluster.cluster.id, keptCluster.cluster.id], 120)
  const { batchId, jobIds } = await submitAndExpand(caller, { jobs })
  for (const id of jobIds.filter((_, index) => index % 2 === 0)) await Job.cancel(caller, id)
  await runProjections(caller)
  const listPage = (filter: object) => list(caller, { page: 1, pageSize: 100, ...filter })
  expect((await listPage({ status: 'Cancelled' })).totalCount).toBe(60)
  await Cluster.remove(caller, removedCluster.cluster.id)
  for (let round = 0; round < 3; round++) {
    await Promise.all([sweep(), sweep()])
    advanceClock(31_000)
  }
  await runProjections(caller)
  const totals = await get(keys.organisationCounts(caller.organisationId))
  expect(totals).toMatchObject({ total: 60, Queued: 60, Cancelled: 0 })
  expect(await listPage({ status: 'Cancelled' })).toMatchObject({ items: [], totalCount: 0 })
  expect((await listPage({})).totalCount).toBe(60)
  expect((await listPage({ batchId })).totalCount).toBe(60)
  expect((await Batch.read(caller, batchId)).counts).toMatchObject({ queued: 60, cancelled: 60 })
})

test('purges all items of a job, including much output', async () => {
  const { caller, enrolled, jobId, leaseId } = await runningJob()
  const data = 'x'.repeat(65_536)
  for (let seq = 0; seq < 20; seq++) await append(enrolled.request(), jobId, outputChunk(leaseId, seq, data))
  await complete(enrolled.request(), jobId, completionReport(enrolled, leaseId))
  const dueTimes: string[] = []
  {
    using _ = onStoreCall({
      before: async ({ input }) => {
        for (const { Put } of input.TransactItems ?? []) dueTimes.push(Put?.Item.duesk ?? '')
      },
    })
    freezeClock()
    await Cluster.remove(caller, enrolled.cluster.id)
  }
  expect(dueTimes.some((time) => time.startsWith(keys.dueSortKey(now() + 45_000)))).toBe(true)
  advanceClock(45_000)
  await sweep()
  for (const { pk } of [keys.job(caller.organisationId, jobId), keys.jobDetails(caller.organisationId, jobId)])
    expect((await query({ pk })).items).toEqual([])
})

test('removes jobs with their output after the retention that follows their end; counts stay exact after an interruption', async () => {
  const { caller, enrolled, jobId, leaseId } = await runningJob()
  const { organisationId } = caller
  const clusterId = enrolled.cluster.id
  const otherJob = await runningJob()
  await append(enrolled.request(), jobId, outputChunk(leaseId, 0, 'x'))
  for (const run of [{ caller, enrolled, jobId, leaseId }, otherJob]) {
    const id = run.caller.organisationId
    await batchPut([{ ...keys.organisation(id), id, jobRetentionDays: 2 }])
    await complete(run.enrolled.request(), run.jobId, completionReport(run.enrolled, run.leaseId))
  }
  const { batchId } = await submitAndExpand(caller, { jobs: jobsForClusters([clusterId], 60) })
  await Batch.cancel(caller, batchId)
  await advance(caller, batchId)
  const submitLong = () => Job.submit(caller, { ...scriptJob(clusterId), deliverWithinSeconds: 2_592_000 })
  const [lateJob, waitingJob] = [await submitLong(), await submitLong()]
  const listPage = (filter: object) => list(caller, { page: 1, pageSize: 100, ...filter })

  advanceClock(47 * 3_600_000)
  await sweep()
  await Job.cancel(caller, lateJob.id)
  // The first sweep after the clock was set forward removes nothing.
  advanceClock(25 * 3_600_000)
  await sweep()
  expect((await listPage({ clusterId })).totalCount).toBe(63)

  advanceClock(3_600_000)
  let interruptions = 0
  {
    using _ = onStoreCall({
      before: async ({ input }) => {
        const removesJob = input.TransactItems?.some(({ Delete }: any) => String(Delete?.Key?.sk).startsWith('JOB#'))
        if (removesJob && interruptions++ === 0) throw new Error('interrupted')
      },
    })
    await sweep()
  }
  // The error of one organisation did not end the round.
  expect(interruptions).toBeGreaterThan(1)
  await Promise.all([sweep(), sweep()])
  await runProjections(caller)
  expect(await get(keys.job(otherJob.caller.organisationId, otherJob.jobId))).toBeUndefined()
  for (const { pk } of [keys.job(organisationId, jobId), keys.jobDetails(organisationId, jobId)])
    expect((await query({ pk })).items).toEqual([])
  for (const filter of [{}, { clusterId }, { type: 'InvokeScript' }]) {
    const { items, totalCount } = await listPage(filter)
    expect([items.map(({ id }) => id), totalCount]).toEqual([[waitingJob.id, lateJob.id], 2])
  }
  expect(await get(keys.organisationCounts(organisationId))).toMatchObject({ total: 2, Cancelled: 1, Completed: 0 })
  expect(await Batch.read(caller, batchId)).toMatchObject({ submittedCount: 60, counts: { cancelled: 60 } })

  await Job.cancel(caller, waitingJob.id)
  await Cluster.remove(caller, clusterId)
  await runProjections(caller)
  expect(await listPage({})).toMatchObject({ items: [], totalCount: 0 })
})
