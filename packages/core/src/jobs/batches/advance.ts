import { defaultDeliverWithinSeconds } from '@platform/contract/job'
import { jobIdOf } from './id.ts'
import { type BatchRecord, endedJobs, findBatch, stopReasonOf } from './record.ts'
import { system } from '../../caller.ts'
import { now } from '../../clock.ts'
import { counterWrites } from '../../clusters/counters.ts'
import * as keys from '../../db/keys.ts'
import { create, getMany, patch, backOff, type WriteItem } from '../../db/table.ts'
import { transact } from '../../db/transact.ts'
import { expand } from './expand.ts'
import { storeContention } from '../../error.ts'
import { requestCancelAll, finishQueued, maxJobsPerTransaction } from '../cancel.ts'
import { type JobEnd, type JobRecord, parseJob } from '../record.ts'
import { enqueueProjections, type BatchReference } from '../../aws/queues.ts'
import { notifyRelay } from '../../lib/relay-notify.ts'

/** Advances a batch after its acceptance: expands it, releases the next jobs, and stops the rest. */

/** A write of many jobs fails if one of them changed; then they are read again. */
const attempts = 10

/** Does all pending work of a batch; idempotent. Enqueues its projections. */
export async function advanceBatch({ organisationId, batchId }: BatchReference): Promise<void> {
  const batch = await expand(organisationId, batchId)
  if (batch !== undefined) await applyBatchLimits(batch)
  await enqueueProjections(organisationId)
}

/**
 * Stops the jobs of a cancelled or failed batch, or releases the next ones. Two calls per 32 jobs, and up to five
 * before stopping.
 */
export async function applyBatchLimits(batch: BatchRecord): Promise<void> {
  let current: BatchRecord | undefined = batch
  for (let attempt = 0; attempt < attempts; attempt++) {
    if (attempt > 0) await backOff(attempt)
    if (current === undefined || current.starts !== undefined || current.finishedAtMs !== undefined) return
    const end = stopReasonOf(current)
    if (await (end === undefined ? release(current) : stop(current, end))) return
    current = await findBatch(batch.organisationId, batch.id)
  }
  throw storeContention()
}

async function jobsOf(
  { organisationId, id }: BatchRecord,
  from: number,
  to: number,
): Promise<(JobRecord | undefined)[]> {
  const jobIds = Array.from({ length: to - from }, (_, place) => jobIdOf(id, from + place))
  const items = await getMany(jobIds.map((jobId) => keys.job(organisationId, jobId)))
  return items.map((item) => item && parseJob(item))
}

/**
 * Ends queued jobs, and requests cancellation of running ones if the batch is cancelled. Returns whether that was all.
 */
async function stop(batch: BatchRecord, end: JobEnd): Promise<boolean> {
  const jobs = (await jobsOf(batch, 0, batch.submittedCount)).filter((job) => job !== undefined)
  const queued = jobs.filter(({ status }) => status === 'Queued')
  const running = jobs.filter((job) => job.status === 'Running' && job.cancelRequestedAtMs === undefined)
  const areEnded = await inParts(queued, (part) => finishQueued(system(batch.organisationId), part, end))
  const areAsked = batch.cancelRequestedAtMs === undefined || (await inParts(running, requestCancelAll))
  return areEnded && areAsked
}

async function inParts(
  jobs: readonly JobRecord[],
  change: (part: readonly JobRecord[]) => Promise<boolean>,
): Promise<boolean> {
  let isWhole = true
  for (let from = 0; from < jobs.length; from += maxJobsPerTransaction) {
    isWhole = (await change(jobs.slice(from, from + maxJobsPerTransaction))) && isWhole
  }
  return isWhole
}

/**
 * Releases jobs up to the concurrency limit. Jobs that are not projected yet count as active, so the limit is never
 * exceeded. Returns whether that was all; false after a concurrent change.
 */
async function release(batch: BatchRecord): Promise<boolean> {
  const { organisationId, maxConcurrency, submittedCount, released, heldEnded } = batch
  const underWay = released - (endedJobs(batch) - heldEnded)
  const count = Math.min((maxConcurrency ?? 0) - underWay, submittedCount - released, maxJobsPerTransaction)
  if (maxConcurrency === undefined || count <= 0) return true
  const next = (await jobsOf(batch, released, released + count)).filter((job) => job !== undefined)
  const jobs = next.filter(({ status }) => status === 'Queued')
  // Jobs that ended while throttled are skipped: they count as released from now on.
  const passed = count - jobs.length
  const waiting = jobs.map(({ clusterId }) => ({ clusterId, add: { waitingJobs: 1 } }))
  const refusal = await transact([
    patch(
      keys.batch(organisationId, batch.id),
      { set: { released: released + count }, ...(passed > 0 && { add: { heldEnded: -passed } }) },
      { released: { is: released }, cancelRequestedAtMs: { absent: true } },
    ),
    ...jobs.flatMap(letGo),
    ...counterWrites(organisationId, waiting).map(({ step }) => step),
  ])
  if (refusal) return false
  await Promise.all([...new Set(jobs.map(({ clusterId }) => clusterId))].map(notifyRelay))
  return release({ ...batch, released: released + count, heldEnded: heldEnded - passed })
}

/** The writes that put a job into its cluster's inbox and start its delivery timeout. */
function letGo({
  id,
  organisationId,
  clusterId,
  deliverWithinSeconds = defaultDeliverWithinSeconds,
}: JobRecord): WriteItem[] {
  const expiresAtMs = now() + deliverWithinSeconds * 1000
  const change = { set: { dispatchedAtMs: now(), expiresAtMs, ...keys.due(id, expiresAtMs) }, remove: ['isThrottled'] }
  return [
    patch(keys.job(organisationId, id), change, { status: { is: 'Queued' }, isThrottled: { is: true } }),
    create(keys.inbox(clusterId, id), {}),
  ]
}
