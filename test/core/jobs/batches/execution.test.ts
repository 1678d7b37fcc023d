import { sweep } from '@platform/core/background/sweep'
import type { Caller } from '@platform/core/caller'
import { now } from '@platform/core/clock'
import * as Cluster from '@platform/core/clusters/cluster'
import { parseRemovalGuard } from '@platform/core/clusters/removal-guard'
import * as keys from '@platform/core/db/keys'
import { create, get, remove } from '@platform/core/db/table'
import { transact } from '@platform/core/db/transact'
import { platformError } from '@platform/core/error'
import * as Batch from '@platform/core/jobs/batches/batch'
import { findBatch } from '@platform/core/jobs/batches/record'
import { claim } from '@platform/core/jobs/claim'
import { complete } from '@platform/core/jobs/complete'
import * as Job from '@platform/core/jobs/job'
import { recordStartsAndEnds } from '@platform/core/jobs/recording'
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
import { isLong } from '../../../support/long.ts'
import { seededRandom } from '../../../support/random.ts'
import { onStoreCall } from '../../../support/store-calls.ts'
import { runBefore } from '../../support/interleaving.ts'
import {
  advance,
  readClusterCounters,
  countByStatus,
  readJobRecords,
  jobsForClusters,
  runProjections,
  submitAndExpand,
} from '../../support/batches.ts'
import {
  completionReport,
  type EnrolledCluster,
  readInboxItems,
  runJob,
  scriptJob,
  readWaitingIds,
} from '../../support/jobs.ts'
import { drainOutbox } from '../../support/outbox.ts'

beforeAll(bootstrapPlatform)

test('cancels a batch before its jobs are stored', async () => {
  const { caller, enrolled } = await callerWithCluster()
  const clusterId = enrolled.cluster.id
  const { batchId, jobIds } = await Batch.submit(caller, { jobs: jobsForClusters([clusterId], 200) })
  const cancelling = { status: 'Cancelling', cancelRequestedAt: expect.any(String) }
  expect(await Batch.cancel(caller, batchId)).toMatchObject(cancelling)
  await Promise.all([advance(caller, batchId), advance(caller, batchId)])
  await runProjections(caller)
  expect(await readInboxItems(clusterId)).toEqual([])
  expect(await Batch.read(caller, batchId)).toMatchObject({ status: 'Finished', counts: { cancelled: 200 } })
  const cancelledJob = { status: 'Cancelled', statusReason: 'cancelled_by_user' }
  expect(await Job.read(caller, jobIds[199] ?? '')).toMatchObject(cancelledJob)
  expect(await readClusterCounters(caller, [clusterId])).toEqual([[0, 0, 200]])
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
  const records = await readJobRecords(caller, jobIds)
  const runningJobs = records.filter(({ status }) => status === 'Running')
  expect(runningJobs.map(({ id }) => id)).toEqual(claimedIds)
  for (const { cancelRequestedAtMs } of runningJobs) expect(cancelRequestedAtMs).toBeDefined()
  const runningCount = claimedIds.length
  const counts = countByStatus(records)
  expect(counts).toMatchObject({ queued: 0, running: runningCount, cancelled: 150 - runningCount })
  expect(await readClusterCounters(caller, [clusterId])).toEqual([[runningCount, 0, 150]])
  expect(await readInboxItems(clusterId)).toEqual([])
  await recordStartsAndEnds(caller.organisationId, claimedIds)
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
  const [completedId = '', failedId = '', cancelledId = '', alsoFailedId = ''] = jobIds
  await expectError(Batch.retry(caller, batchId), 'nothing_to_retry')
  await runJob(enrolled, completedId)
  await runJob(enrolled, failedId, 1)
  await Job.cancel(caller, cancelledId)
  await runProjections(caller)
  await runJob(enrolled, alsoFailedId, 3)
  await runProjections(caller)
  const retry = await Batch.retry(caller, batchId)
  expect(retry.submittedCount).toBe(3)
  await advance(caller, retry.batchId)
  const retriedJobs = await Promise.all(retry.jobIds.map((id) => Job.read(caller, id)))
  expect(retriedJobs.map(({ payload }) => payload)).toEqual(jobs.slice(1).map(({ payload }) => payload))
  const records = await readJobRecords(caller, retry.jobIds)
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
  const clusterKeyParts = [caller.organisationId, enrolled.cluster.id] as const
  const nodes = await get(keys.nodes(...clusterKeyParts))
  await transact([remove(keys.nodes(...clusterKeyParts))])
  expect(await retry()).toBe('node_not_in_cluster')
  await transact([create(keys.nodes(...clusterKeyParts), nodes ?? {})])
  runBefore(/TransactWrite/, () => transact([remove(keys.cluster(...clusterKeyParts))]))
  expect(await retry()).toBe('cluster_forbidden')
})

test('a retry skips completed jobs and jobs of removed clusters', async () => {
  const caller = await newCaller()
  const [removedCluster, keptCluster] = [await enrolledCluster(caller), await enrolledCluster(caller)]
  const jobs = jobsForClusters([removedCluster.cluster.id, keptCluster.cluster.id], 6)
  const { batchId, jobIds } = await submitAndExpand(caller, { jobs })
  for (const [index, id] of jobIds.entries()) await runJob(index % 2 === 0 ? removedCluster : keptCluster, id, 1)
  await runProjections(caller)
  await Cluster.remove(caller, removedCluster.cluster.id)
  const retry = await Batch.retry(caller, batchId)
  expect(retry.submittedCount).toBe(3)
  await advance(caller, retry.batchId)
  const records = await readJobRecords(caller, retry.jobIds)
  expect(records.map(({ clusterId }) => clusterId)).toEqual(Array(3).fill(keptCluster.cluster.id))
  for (const id of retry.jobIds) await runJob(keptCluster, id)
  await runProjections(caller)
  await expectError(Batch.retry(caller, retry.batchId), 'nothing_to_retry')
  await Cluster.remove(caller, keptCluster.cluster.id)
  await expectError(Batch.retry(caller, batchId), 'nothing_to_retry')
  await sweep()
  await expectError(Batch.retry(caller, batchId), 'nothing_to_retry')
})

async function runAll(caller: Caller, clusters: readonly EnrolledCluster[]): Promise<number[]> {
  const rounds: number[] = []
  for (;;) {
    const inboxes = await Promise.all(clusters.map(({ cluster }) => readInboxItems(cluster.id)))
    if (inboxes.flat().length === 0) return rounds
    rounds.push(inboxes.flat().length)
    for (const [index, enrolled] of clusters.entries()) {
      for (const id of inboxes[index] ?? []) await runJob(enrolled, id)
    }
    await runProjections(caller)
  }
}

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
    expect((await readInboxItems(clusterId)).length).toBeLessThanOrEqual(3)
  }
  expect(await readInboxItems(clusterId)).toEqual([1, 2, 5].map((index) => jobIds[index]))
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
  expect(await readInboxItems(enrolled.cluster.id)).toEqual([second])
  const { expiresAt } = await Job.read(caller, second)
  expect(Date.parse(expiresAt)).toBeGreaterThan(now() + 90_000)
  advanceClock(50_000)
  await advance(caller, batchId)
  expect(await readInboxItems(enrolled.cluster.id)).toEqual([second])
})

test('maxErrors 0 cancels the remaining jobs after the first failed job, not after a cancelled one', async () => {
  const { caller, enrolled } = await callerWithCluster()
  const jobs = jobsForClusters([enrolled.cluster.id], 9)
  const { batchId, jobIds } = await submitAndExpand(caller, { jobs, maxErrors: 0, maxConcurrency: 2 })
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

type State = Awaited<ReturnType<typeof submitRandomBatch>>

async function submitRandomBatch(seed: number) {
  const random = seededRandom(seed)
  const pick = (limit: number): number => Math.floor(random() * limit)
  const caller = await newCaller()
  const clusters = [await enrolledCluster(caller), await enrolledCluster(caller), await enrolledCluster(caller)]
  const clusterIds = clusters.map(({ cluster }) => cluster.id)
  const jobs = jobsForClusters(clusterIds, 1 + pick(40))
  const maxConcurrency = pick(3) === 0 ? undefined : 1 + pick(6)
  const maxErrors = pick(2) === 0 ? undefined : pick(6)
  const { batchId, jobIds } = await Batch.submit(caller, { jobs, maxConcurrency, maxErrors })
  return {
    ...{ pick, caller, clusters, clusterIds, batchId, jobIds, maxConcurrency, maxErrors },
    mayCancel: pick(4) === 0,
    claims: [] as { enrolled: EnrolledCluster; jobId: string; leaseId: string }[],
    leases: new Map<string, Set<string>>(),
  }
}

async function claimJob({ claims, leases }: State, enrolled: EnrolledCluster, jobId: string): Promise<void> {
  const { leaseId } = await claim(enrolled.request(), jobId, `key of ${jobId}`)
  if (!leases.has(jobId)) claims.push({ enrolled, jobId, leaseId })
  leases.set(jobId, (leases.get(jobId) ?? new Set()).add(leaseId))
}

async function completeJob({ claims }: State, index: number, exitCode: number): Promise<void> {
  const [entry] = claims.splice(index, 1)
  if (entry === undefined) return
  const { enrolled, jobId, leaseId } = entry
  const code = await errorCodeOf(complete(enrolled.request(), jobId, completionReport(enrolled, leaseId, exitCode)))
  if (code === 'conflict') claims.push(entry)
}

/** A random action. All random choices precede its first call, so that a seed always selects the same action. */
async function randomAction(state: State): Promise<unknown> {
  const { pick, caller, clusters, batchId, jobIds, claims } = state
  const choice = pick(1000)
  const enrolled = clusters[choice % clusters.length]!
  const kind = pick(12)
  if (kind < 2) return advance(caller, batchId)
  if (kind < 4) return drainOutbox(caller.organisationId)
  if (kind < 7) {
    const inbox = await readWaitingIds(caller, enrolled.cluster.id)
    return inbox.length === 0 ? undefined : claimJob(state, enrolled, inbox[choice % inbox.length]!)
  }
  if (kind < 10) return completeJob(state, choice % Math.max(1, claims.length), choice % 3 === 0 ? 1 : 0)
  if (kind === 10) return choice % 6 === 0 ? Job.cancel(caller, jobIds[choice % jobIds.length]!) : undefined
  return state.mayCancel && choice % 15 === 0 ? Batch.cancel(caller, batchId) : undefined
}

/** Runs four random actions concurrently, while about one in six store calls fails before or after it takes effect. */
async function runStep(state: State): Promise<void> {
  const failRandomly = async () => {
    if (state.pick(12) === 0) throw platformError('database_unavailable')
  }
  using _ = onStoreCall({ before: failRandomly, after: failRandomly })
  const codes = await Promise.all(Array.from({ length: 4 }, () => errorCodeOf(randomAction(state))))
  for (const code of codes) expect(code).toMatch(/^([a-z_]+|no error)$/)
}

async function finish(state: State): Promise<void> {
  const { pick, caller, clusters, batchId, jobIds, claims } = state
  for (let round = 0; round < jobIds.length + 10; round++) {
    await advance(caller, batchId)
    for (const enrolled of clusters) {
      for (const jobId of await readWaitingIds(caller, enrolled.cluster.id)) await claimJob(state, enrolled, jobId)
    }
    const runningJobs = (await readJobRecords(caller, jobIds)).filter(({ status }) => status === 'Running')
    for (const { id, clusterId, leaseId = '' } of runningJobs) {
      const enrolled = clusters.find(({ cluster }) => cluster.id === clusterId)!
      await complete(enrolled.request(), id, completionReport(enrolled, leaseId, pick(3) === 0 ? 1 : 0))
    }
    claims.length = 0
    await drainOutbox(caller.organisationId)
    if ((await Batch.read(caller, batchId)).status === 'Finished') return
  }
}

const countActive = async ({ caller, jobIds }: State): Promise<number> =>
  (await readJobRecords(caller, jobIds)).filter(
    ({ status, isThrottled }) => status === 'Running' || (status === 'Queued' && !isThrottled),
  ).length

async function expectExactCounts({ caller, clusterIds, batchId, jobIds, leases, maxErrors }: State): Promise<void> {
  const { organisationId } = caller
  const jobs = await readJobRecords(caller, jobIds)
  const counts = countByStatus(jobs)
  expect(jobs).toHaveLength(jobIds.length)
  expect(await Batch.read(caller, batchId)).toMatchObject({ status: 'Finished', counts })
  expect((await findBatch(organisationId, batchId))?.running).toBe(0)
  const counters = await readClusterCounters(caller, clusterIds)
  for (const [active, waiting] of counters) expect([active, waiting]).toEqual([0, 0])
  expect(counters.reduce((sum, [, , total = 0]) => sum + total, 0)).toBe(jobIds.length)
  expect(parseRemovalGuard(await get(keys.removalGuard(organisationId))).open.size).toBe(0)
  expect(await get(keys.organisationCounts(organisationId))).toMatchObject({ total: jobIds.length })
  for (const { size } of leases.values()) expect(size).toBe(1)
  const stoppedJobs = jobs.filter(({ statusReason }) => statusReason === 'batch_error_limit')
  if ((counts['failed'] ?? 0) <= (maxErrors ?? Infinity)) expect(stoppedJobs).toEqual([])
}

test.each(isLong ? [1, 2, 3, 4, 5, 6, 7, 8, 9, 10] : [1, 2, 3])(
  'a batch runs each job at most once, within its limits and with exact counts, despite failures (seed %i)',
  async (seed) => {
    const state = await submitRandomBatch(seed)
    for (let count = 0; count < 25; count++) {
      await runStep(state)
      expect(await countActive(state)).toBeLessThanOrEqual(state.maxConcurrency ?? Infinity)
    }
    await finish(state)
    await expectExactCounts(state)
  },
)
