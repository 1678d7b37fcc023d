import { chunkKeys, type PendingJob, readPendingJobs } from './chunks.ts'
import { closeBatchWrite } from '../../clusters/removal-guard.ts'
import { newJobOf } from './find-job.ts'
import { type BatchRecord, findBatch, stopReasonOf, storedCount } from './record.ts'
import { system } from '../../caller.ts'
import { commit } from '../../outbox/commit.ts'
import { now } from '../../clock.ts'
import { hiddenWrites } from '../../clusters/removed.ts'
import { addEnded, type CounterChange, counterWrites, maxListedBatchJobs } from '../../clusters/counters.ts'
import { unchangedCondition } from '../../db/expression.ts'
import * as keys from '../../db/keys.ts'
import { patch, backOff, remove, tryUpdate, type WriteItem } from '../../db/table.ts'
import { transact } from '../../db/transact.ts'
import { forEachLimit } from '../../lib/async.ts'
import { failpoint } from '../../lib/failpoint.ts'
import { PlatformError, storeContentionError } from '../../error.ts'
import { enterInbox, inboxEntryCounts } from '../inbox.ts'
import { type JobEnd, parseJob, effectsOfQueued, effectsOfFailedCreation, createWrites, newItems } from '../record.ts'
import type { Effects } from '../../outbox/record.ts'
import { wakeRelay } from '../../aws/wake-relay.ts'

/**
 * Creates the jobs of an accepted batch in transactions. A transaction counts its jobs, adds them to the lists of their
 * clusters or to inboxes, and advances the batch's progress conditionally, so that concurrent or interrupted expansions
 * create each job once.
 *
 * The transaction also stores the records of the jobs, unless the clusters list all of them. In that case, the job
 * records are stored after the transaction, because a write costs half as much outside of one. Until the record of a
 * job is stored, reads find the job in its chunk, and no relay can claim it. The next expansion stores the records that
 * an interrupted one has not stored, and never changes an existing record.
 */

/** The number of consecutive attempts without progress after which the expansion fails. */
const maxAttempts = 10
/** A transaction has at most 100 writes and 4 MB. The batch, the outbox record and its check need one write each. */
const maxWrites = 97
const maxPayloadBytes = 2_500_000
const maxConcurrentWrites = 25

type PendingJobs = ReadonlyMap<number, PendingJob>

export async function expand(organisationId: string, batchId: string): Promise<BatchRecord | undefined> {
  let [failureCount, reachedCount] = [0, -1]
  for (;;) {
    const batch = await findBatch(organisationId, batchId)
    if (batch?.starts === undefined) return batch
    failureCount = batch.expanded > reachedCount ? 0 : failureCount + 1
    reachedCount = batch.expanded
    if (failureCount === maxAttempts) throw storeContentionError()
    if (failureCount > 0) await backOff(failureCount)
    await expandFrom(batch, batch.starts)
  }
}

async function expandFrom(batch: BatchRecord, starts: readonly number[]): Promise<void> {
  const pendingJobs = await readPendingJobs({ ...batch, starts }, storedCount(batch))
  if (pendingJobs === undefined) return
  const unlistedIds = unlistedClusters(batch, pendingJobs)
  try {
    await storeListedJobs(batch, pendingJobs)
    let currentBatch: BatchRecord | undefined = batch
    while (currentBatch !== undefined && currentBatch.expanded < currentBatch.submittedCount) {
      currentBatch = await createNext(currentBatch, pendingJobs, unlistedIds)
      await failpoint('batch.expanding')
    }
    if (currentBatch !== undefined) await close(currentBatch, starts)
  } catch (error) {
    // After an error such as contention, the next attempt of `expand` continues from the stored progress.
    if (!(error instanceof PlatformError)) throw error
  }
}

/**
 * Returns the clusters whose jobs wait in items of the inbox: clusters with more jobs than their record can list, and
 * all clusters of a batch that limits concurrency.
 */
function unlistedClusters({ maxConcurrency }: BatchRecord, pendingJobs: PendingJobs): Set<string> {
  const byCluster = Map.groupBy(pendingJobs.values(), ({ clusterId }) => clusterId)
  const hasMany = ({ length }: readonly PendingJob[]) => maxConcurrency !== undefined || length > maxListedBatchJobs
  return new Set([...byCluster].filter(([, jobs]) => hasMany(jobs)).map(([clusterId]) => clusterId))
}

async function createNext(
  batch: BatchRecord,
  pendingJobs: PendingJobs,
  unlistedIds: Set<string>,
): Promise<BatchRecord | undefined> {
  const removedIds = new Set<string>()
  for (;;) {
    const jobs = nextJobs(batch, pendingJobs, { removedIds, unlistedIds })
    const expandedCount = batch.expanded + jobs.length
    const releasedCount = Math.min(expandedCount, batch.maxConcurrency ?? 0)
    const counters = counterWrites(
      batch.organisationId,
      jobs.flatMap(({ counterChange }) => (counterChange === undefined ? [] : [counterChange])),
    )
    const areAllListed = jobs.every(({ isListed }) => isListed)
    const unstoredFrom = areAllListed ? batch.expanded : undefined
    const progress = { expanded: expandedCount, released: releasedCount, unstoredFrom }
    const failure = await commit(system(batch.organisationId), {
      writes: [
        progressWrite(batch, progress),
        ...counters.map(({ write }) => write),
        ...(areAllListed ? [] : jobs.flatMap(({ writes }) => writes)),
        // Jobs of removed clusters count as hidden, because their clusters have no counters.
        ...hiddenWrites(batch.organisationId, countHiddenIn(jobs)),
      ],
      events: jobs.flatMap(({ effects: { events = [] } }) => events),
      transitions: jobs.flatMap(({ effects: { transitions = [] } }) => transitions),
      // `advanceBatch` enqueues the projections once, after the expansion.
      isEnqueued: true,
    })
    if (failure === undefined) {
      const currentBatch = { ...batch, ...progress }
      if (areAllListed) {
        await failpoint('batch.listed')
        await storeListedJobs(currentBatch, pendingJobs)
      } else await wakeRelays(jobs.filter(({ isWaiting }) => isWaiting))
      return currentBatch
    }
    const counter = counters[failure.index - 1]
    if (counter === undefined) return undefined
    if (failure.item === undefined) removedIds.add(counter.clusterId)
    // The record of this cluster cannot list its jobs. Listing no jobs of this transaction avoids more failed attempts.
    else for (const { clusterId } of counters) unlistedIds.add(clusterId)
  }
}

/** Stores the records of created jobs that may not be stored yet. Wakes their relays, unless the batch must stop. */
async function storeListedJobs(batch: BatchRecord, pendingJobs: PendingJobs): Promise<void> {
  const jobs = [...pendingJobs].filter(([index]) => index >= storedCount(batch) && index < batch.expanded)
  await forEachLimit(maxConcurrentWrites, jobs, async ([index, pendingJob]) => {
    const record = { ...newJobOf(batch, index, pendingJob), isListed: true as const }
    for (const { key, item } of newItems(withIndexKeys(record), pendingJob.payload)) {
      await tryUpdate(key, { set: item }, { pk: { absent: true } })
    }
  })
  if (stopReasonOf(batch) === undefined) await wakeRelays(jobs.map(([, pendingJob]) => pendingJob))
}

type Progress = Pick<BatchRecord, 'expanded' | 'released' | 'unstoredFrom'>

const progressWrite = (batch: BatchRecord, { expanded, released, unstoredFrom }: Progress): WriteItem =>
  patch(
    keys.batch(batch.organisationId, batch.id),
    {
      set: { expanded, ...(released > 0 && { released }), ...(unstoredFrom !== undefined && { unstoredFrom }) },
      remove: unstoredFrom === undefined ? ['unstoredFrom'] : [],
    },
    {
      expanded: { is: batch.expanded },
      cancelRequestedAtMs: unchangedCondition(batch.cancelRequestedAtMs),
      deadLetteredAtMs: unchangedCondition(batch.deadLetteredAtMs),
    },
  )

type NewJob = ReturnType<typeof newJob>

const countHiddenIn = (jobs: readonly NewJob[]): Record<string, number> => {
  const statuses = jobs.filter(({ counterChange }) => counterChange === undefined).map(({ record }) => record.status)
  return Object.fromEntries([...Map.groupBy(statuses, String)].map(([status, { length }]) => [status, length]))
}

interface ClusterSets {
  removedIds: ReadonlySet<string>
  unlistedIds: ReadonlySet<string>
}

function nextJobs(batch: BatchRecord, pendingJobs: PendingJobs, clusterSets: ClusterSets): NewJob[] {
  const jobs: NewJob[] = []
  const clusterIds = new Set<string>()
  let [writes, bytes] = [0, 0]
  for (let index = batch.expanded; index < batch.submittedCount; index++) {
    const pendingJob = pendingJobs.get(index)
    if (pendingJob === undefined) throw new Error(`Job ${index} of ${batch.id} is missing in its chunk`)
    const job = newJob(batch, index, pendingJob, clusterSets)
    writes += job.writes.length + (clusterIds.has(pendingJob.clusterId) ? 0 : 1)
    bytes += Buffer.byteLength(pendingJob.payload)
    if (jobs.length > 0 && (writes > maxWrites || bytes > maxPayloadBytes)) break
    jobs.push(job)
    clusterIds.add(pendingJob.clusterId)
  }
  return jobs
}

function newJob(batch: BatchRecord, index: number, pendingJob: PendingJob, { removedIds, unlistedIds }: ClusterSets) {
  const isClusterRemoved = removedIds.has(pendingJob.clusterId)
  const job = newJobOf(batch, index, pendingJob)
  const end = endOf(batch, isClusterRemoved)
  const isWaiting = end === undefined && !job.isThrottled
  const isListed = isWaiting && !unlistedIds.has(pendingJob.clusterId)
  const record =
    end === undefined ? { ...job, ...(isListed && { isListed }) } : { ...job, ...end, completedAtMs: now() }
  const add = {
    jobs: 1,
    ...(end === undefined ? { activeJobs: 1 } : addEnded(end.status)),
    ...(isWaiting && !isListed && inboxEntryCounts),
  }
  const counterChange: CounterChange | undefined = isClusterRemoved
    ? undefined
    : { clusterId: pendingJob.clusterId, add, lastJobId: job.id, ...(isListed && { list: job.id }) }
  const effects: Pick<Effects, 'events' | 'transitions'> =
    end === undefined ? effectsOfQueued(job) : effectsOfFailedCreation(parseJob(job), end)
  const jobWrites = createWrites(withIndexKeys(record), pendingJob.payload)
  const writes = [...jobWrites, ...(isWaiting && !isListed ? [enterInbox(job)] : [])]
  return { clusterId: record.clusterId, record, writes, isWaiting, isListed, counterChange, effects }
}

const withIndexKeys = <Job extends Parameters<typeof keys.jobIndexKeys>[0]>(job: Job) => ({
  ...job,
  ...keys.jobIndexKeys(job),
})

/** The removal guard protects clusters of open batches. If a cluster is missing anyway, only its jobs fail. */
function endOf(batch: BatchRecord, isClusterRemoved: boolean): JobEnd | undefined {
  if (isClusterRemoved) return { status: 'Failed', statusReason: 'cluster_removed' }
  if (batch.deadLetteredAtMs !== undefined) return { status: 'Failed', statusReason: 'dead_lettered' }
  return stopReasonOf(batch)
}

const wakeRelays = (jobs: readonly { clusterId: string }[]): Promise<unknown> =>
  Promise.all([...new Set(jobs.map(({ clusterId }) => clusterId))].map(wakeRelay))

async function close({ organisationId, id, submittedCount }: BatchRecord, starts: readonly number[]): Promise<void> {
  await failpoint('batch.expanded')
  await transact([
    patch(keys.batch(organisationId, id), { remove: ['starts', 'unstoredFrom'] }, { expanded: { is: submittedCount } }),
    closeBatchWrite(organisationId, id),
    ...chunkKeys(organisationId, id, starts).map((key) => remove(key)),
  ])
}
