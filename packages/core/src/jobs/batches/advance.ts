import { defaultDeliverWithinSeconds } from '@platform/contract/job'
import { jobIdOf } from './id.ts'
import { type BatchRecord, countEnded, findBatch, stopReasonOf } from './record.ts'
import { system } from '../../caller.ts'
import { now } from '../../clock.ts'
import { counterWrites } from '../../clusters/counters.ts'
import * as keys from '../../db/keys.ts'
import { getMany, patch, backOff, type WriteItem } from '../../db/table.ts'
import { transact } from '../../db/transact.ts'
import { expand } from './expand.ts'
import { storeContentionError } from '../../error.ts'
import { requestCancelAll, finishQueued, maxJobsPerTransaction } from '../cancel.ts'
import { enterInbox, inboxEntryCounts } from '../inbox.ts'
import { type JobEnd, type JobRecord, parseJob } from '../record.ts'
import { enqueueProjections, type BatchReference } from '../../aws/queues.ts'
import { wakeRelay } from '../../aws/wake-relay.ts'

const maxAttempts = 10

/** Idempotent: a repeated message continues pending work. */
export async function advanceBatch({ organisationId, batchId }: BatchReference): Promise<void> {
  const batch = await expand(organisationId, batchId)
  if (batch !== undefined) await applyBatchLimits(batch)
  await enqueueProjections(organisationId)
}

export async function applyBatchLimits(batch: BatchRecord): Promise<void> {
  let current: BatchRecord | undefined = batch
  for (let attempt = 0; attempt < maxAttempts; attempt++) {
    if (attempt > 0) await backOff(attempt)
    if (current === undefined || current.starts !== undefined || current.finishedAtMs !== undefined) return
    const end = stopReasonOf(current)
    if (await (end === undefined ? release(current) : stop(current, end))) return
    current = await findBatch(batch.organisationId, batch.id)
  }
  throw storeContentionError()
}

async function jobsOf(
  { organisationId, id }: BatchRecord,
  from: number,
  to: number,
): Promise<(JobRecord | undefined)[]> {
  const jobIds = Array.from({ length: to - from }, (_, index) => jobIdOf(id, from + index))
  const items = await getMany(jobIds.map((jobId) => keys.job(organisationId, jobId)))
  return items.map((item) => item && parseJob(item))
}

/**
 * Ends queued jobs, and requests the cancellation of running jobs if a user cancelled the batch. Returns false if a job
 * was changed concurrently.
 */
async function stop(batch: BatchRecord, end: JobEnd): Promise<boolean> {
  const jobs = (await jobsOf(batch, 0, batch.submittedCount)).filter((job) => job !== undefined)
  const queuedJobs = jobs.filter(({ status }) => status === 'Queued')
  const runningJobs = jobs.filter((job) => job.status === 'Running' && job.cancelRequestedAtMs === undefined)
  const areFinished = await changeAll(queuedJobs, (chunk) => finishQueued(system(batch.organisationId), chunk, end))
  const areCancelsRequested =
    batch.cancelRequestedAtMs === undefined || (await changeAll(runningJobs, requestCancelAll))
  return areFinished && areCancelsRequested
}

async function changeAll(
  jobs: readonly JobRecord[],
  change: (chunk: readonly JobRecord[]) => Promise<boolean>,
): Promise<boolean> {
  let isComplete = true
  for (let from = 0; from < jobs.length; from += maxJobsPerTransaction) {
    isComplete = (await change(jobs.slice(from, from + maxJobsPerTransaction))) && isComplete
  }
  return isComplete
}

/**
 * Releases throttled jobs up to the concurrency limit. A job counts as active until its end is projected. Returns false
 * if the batch or a job was changed concurrently.
 */
async function release(batch: BatchRecord): Promise<boolean> {
  const { organisationId, maxConcurrency, submittedCount, released, heldEnded } = batch
  const activeCount = released - (countEnded(batch) - heldEnded)
  const count = Math.min((maxConcurrency ?? 0) - activeCount, submittedCount - released, maxJobsPerTransaction)
  if (maxConcurrency === undefined || count <= 0) return true
  const nextJobs = (await jobsOf(batch, released, released + count)).filter((job) => job !== undefined)
  const jobs = nextJobs.filter(({ status }) => status === 'Queued')
  // Jobs that ended while throttled are skipped and count as released.
  const skippedCount = count - jobs.length
  const counterChanges = jobs.map(({ clusterId }) => ({ clusterId, add: inboxEntryCounts }))
  const failure = await transact([
    patch(
      keys.batch(organisationId, batch.id),
      { set: { released: released + count }, ...(skippedCount > 0 && { add: { heldEnded: -skippedCount } }) },
      { released: { is: released }, cancelRequestedAtMs: { absent: true } },
    ),
    ...jobs.flatMap(releaseWrites),
    ...counterWrites(organisationId, counterChanges).map(({ write }) => write),
  ])
  if (failure) return false
  await Promise.all([...new Set(jobs.map(({ clusterId }) => clusterId))].map(wakeRelay))
  return release({ ...batch, released: released + count, heldEnded: heldEnded - skippedCount })
}

/** The delivery timeout of a job starts when the batch releases it. */
function releaseWrites({
  id,
  organisationId,
  clusterId,
  deliverWithinSeconds = defaultDeliverWithinSeconds,
}: JobRecord): WriteItem[] {
  const change = { set: { expiresAtMs: now() + deliverWithinSeconds * 1000 }, remove: ['isThrottled'] }
  return [
    patch(keys.job(organisationId, id), change, { status: { is: 'Queued' }, isThrottled: { is: true } }),
    enterInbox({ clusterId, id }),
  ]
}
