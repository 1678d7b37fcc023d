import { chunkKeys, type PendingJob, readPendingJobs } from './chunks.ts'
import { closeBatchWrite } from '../../clusters/removal-guard.ts'
import { newJobOf } from './find-job.ts'
import { type BatchRecord, findBatch, stopReasonOf } from './record.ts'
import { system } from '../../caller.ts'
import { commit } from '../../outbox/commit.ts'
import { now } from '../../clock.ts'
import { type CounterChange, counterWrites } from '../../clusters/counters.ts'
import { unchanged } from '../../db/expression.ts'
import * as keys from '../../db/keys.ts'
import { create, patch, backOff, remove, type WriteItem } from '../../db/table.ts'
import { transact } from '../../db/transact.ts'
import { failpoint } from '../../lib/failpoint.ts'
import { storeContention, PlatformError } from '../../error.ts'
import { type JobEnd, parseJob, effectsOfQueued, effectsOfFailedCreation } from '../record.ts'
import { type Effects } from '../../outbox/record.ts'
import { notifyRelay } from '../../lib/relay-notify.ts'

/**
 * Stores the jobs of an accepted batch, in transactions as large as possible. Each advances the batch's progress
 * conditionally: concurrent or interrupted expansions create no job twice.
 */

/** Consecutive attempts without progress, because others progress. */
const attempts = 10
/** A transaction has 100 writes and 4 MB. The batch and the outbox record take one write each. */
const writesLeft = 98
const payloadBytesLeft = 2_500_000

/** Expands a batch completely; returns its current record. Two calls, one per few dozen jobs, and two. */
export async function expand(organisationId: string, batchId: string): Promise<BatchRecord | undefined> {
  let [lost, reached] = [0, -1]
  for (;;) {
    const batch = await findBatch(organisationId, batchId)
    if (batch?.starts === undefined) return batch
    lost = batch.expanded > reached ? 0 : lost + 1
    reached = batch.expanded
    if (lost === attempts) throw storeContention()
    if (lost > 0) await backOff(lost)
    await expandFrom(batch, batch.starts)
  }
}

/** Continues until the batch is expanded or was changed concurrently. */
async function expandFrom(batch: BatchRecord, starts: readonly number[]): Promise<void> {
  const planned = await readPendingJobs({ ...batch, starts }, batch.expanded)
  if (planned === undefined) return
  try {
    let current: BatchRecord | undefined = batch
    while (current !== undefined && current.expanded < current.submittedCount) {
      current = await makeNext(current, planned)
      await failpoint('batch.expanding')
    }
    if (current !== undefined) await close(current, starts)
  } catch (error) {
    // Contention at one cluster: the next attempt continues from here.
    if (!(error instanceof PlatformError)) throw error
  }
}

/** Creates as many jobs as a transaction holds; undefined if the batch has changed. */
async function makeNext(
  batch: BatchRecord,
  planned: ReadonlyMap<number, PendingJob>,
): Promise<BatchRecord | undefined> {
  const gone = new Set<string>()
  for (;;) {
    const jobs = nextJobs(batch, planned, gone)
    const expanded = batch.expanded + jobs.length
    const released = Math.min(expanded, batch.maxConcurrency ?? 0)
    const counters = counterWrites(
      batch.organisationId,
      jobs.flatMap(({ counted }) => (counted === undefined ? [] : [counted])),
    )
    const refusal = await commit(system(batch.organisationId), {
      writes: [
        progressStep(batch, { expanded, released }),
        ...counters.map(({ step }) => step),
        ...jobs.flatMap(stepsOf),
      ],
      events: jobs.flatMap(({ told: { events = [] } }) => events),
      transitions: jobs.flatMap(({ told: { transitions = [] } }) => transitions),
      // Projections are enqueued once, after the expansion.
      isEnqueued: true,
    })
    if (refusal === undefined) {
      await ringFor(jobs)
      return { ...batch, expanded, released }
    }
    const refused = counters[refusal.step - 1]
    if (refused === undefined) return undefined
    gone.add(refused.clusterId)
  }
}

const progressStep = (batch: BatchRecord, { expanded, released }: { expanded: number; released: number }): WriteItem =>
  patch(
    keys.batch(batch.organisationId, batch.id),
    { set: { expanded, ...(released > 0 && { released }) } },
    {
      expanded: { is: batch.expanded },
      cancelRequestedAtMs: unchanged(batch.cancelRequestedAtMs),
      deadLetteredAtMs: unchanged(batch.deadLetteredAtMs),
    },
  )

type NewJob = ReturnType<typeof newJob>

/** The next jobs that fit into one transaction. */
function nextJobs(batch: BatchRecord, planned: ReadonlyMap<number, PendingJob>, gone: ReadonlySet<string>): NewJob[] {
  const jobs: NewJob[] = []
  const clusterIds = new Set<string>()
  let [writes, bytes] = [0, 0]
  for (let index = batch.expanded; index < batch.submittedCount; index++) {
    const plan = planned.get(index)
    if (plan === undefined) throw new Error(`Job ${index} of ${batch.id} is missing in its chunk`)
    const job = newJob(batch, index, plan, gone.has(plan.clusterId))
    writes += (job.isWaiting ? 3 : 2) + (clusterIds.has(plan.clusterId) ? 0 : 1)
    bytes += Buffer.byteLength(plan.payload)
    if (jobs.length > 0 && (writes > writesLeft || bytes > payloadBytesLeft)) break
    jobs.push(job)
    clusterIds.add(plan.clusterId)
  }
  return jobs
}

/** The initial record of a job: waiting for its relay, throttled by its batch, or already ended. */
function newJob(batch: BatchRecord, index: number, { clusterId, ...planned }: PendingJob, isGone: boolean) {
  const job = newJobOf(batch, index, { clusterId, ...planned })
  const end = endOf(batch, isGone)
  const isWaiting = end === undefined && !job.isThrottled
  const dispatched = isWaiting ? { dispatchedAtMs: now(), ...keys.due(job.id, job.expiresAtMs) } : {}
  const row = end === undefined ? { ...job, ...dispatched } : { ...job, ...end, completedAtMs: now() }
  const add = { jobs: 1, ...(end === undefined && { activeJobs: 1 }), ...(isWaiting && { waitingJobs: 1 }) }
  const counted: CounterChange | undefined = isGone ? undefined : { clusterId, add }
  const told: Pick<Effects, 'events' | 'transitions'> =
    end === undefined ? effectsOfQueued(job) : effectsOfFailedCreation(parseJob(job), end)
  return { row: { ...row, ...keys.jobIndexKeys(row) }, payload: planned.payload, isWaiting, counted, told }
}

/**
 * The removal guard keeps the clusters of open batches; should one be missing, its jobs fail without blocking others.
 */
function endOf(batch: BatchRecord, isGone: boolean): JobEnd | undefined {
  if (isGone) return { status: 'Failed', statusReason: 'cluster_removed' }
  if (batch.deadLetteredAtMs !== undefined) return { status: 'Failed', statusReason: 'dead_lettered' }
  return stopReasonOf(batch)
}

const stepsOf = ({ row, payload, isWaiting }: NewJob): WriteItem[] => [
  create(keys.job(row.organisationId, row.id), row),
  create(keys.payload(row.organisationId, row.id), { payload }),
  ...(isWaiting ? [create(keys.inbox(row.clusterId, row.id), {})] : []),
]

const ringFor = (jobs: readonly NewJob[]): Promise<unknown> =>
  Promise.all([...new Set(jobs.filter(({ isWaiting }) => isWaiting).map(({ row }) => row.clusterId))].map(notifyRelay))

/** All jobs are stored and counted by their clusters: deletes the chunks. */
async function close({ organisationId, id, submittedCount }: BatchRecord, starts: readonly number[]): Promise<void> {
  await failpoint('batch.expanded')
  await transact([
    patch(keys.batch(organisationId, id), { remove: ['starts'] }, { expanded: { is: submittedCount } }),
    closeBatchWrite(organisationId, id),
    ...chunkKeys(organisationId, id, starts).map((key) => remove(key)),
  ])
}
