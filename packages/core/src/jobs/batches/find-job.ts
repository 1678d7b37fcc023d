import { type PendingJob, readPendingJobs } from './chunks.ts'
import { batchIdOf, indexOf, jobIdOf } from './id.ts'
import { type BatchRecord, findBatch } from './record.ts'
import * as keys from '../../db/keys.ts'
import { get } from '../../db/table.ts'
import { platformError } from '../../error.ts'
import { isId } from '../../id.ts'
import { type JobRecord, parseJob } from '../record.ts'
import { isOperation, type OperationRecord, parseOperation } from '../../operations/record.ts'

/** Reads the jobs of a batch before they are stored. */

/** Whether the batch's concurrency limit holds the job back initially. */
const isThrottledAtStart = ({ maxConcurrency }: BatchRecord, index: number): boolean =>
  maxConcurrency !== undefined && index >= maxConcurrency

/** The record of a batch's job before it changes. */
export const newJobOf = (batch: BatchRecord, index: number, planned: PendingJob) => ({
  id: jobIdOf(batch.id, index),
  organisationId: batch.organisationId,
  clusterId: planned.clusterId,
  batchId: batch.id,
  type: 'InvokeScript' as const,
  status: 'Queued' as const,
  timeoutSeconds: planned.timeoutSeconds,
  createdAtMs: batch.createdAtMs,
  createdBy: batch.createdBy,
  expiresAtMs: batch.createdAtMs + planned.deliverWithinSeconds * 1000,
  deliverWithinSeconds: planned.deliverWithinSeconds,
  ...(isThrottledAtStart(batch, index) && { isThrottled: true as const }),
})

/** A job that is not stored yet. `payload` is its JSON. */
export interface UnexpandedJob {
  job: JobRecord
  payload: string
  isPlanned: true
}

const placed = (batch: BatchRecord, index: number, planned: PendingJob): UnexpandedJob => ({
  job: parseJob(newJobOf(batch, index, planned)),
  payload: planned.payload,
  isPlanned: true,
})

/** Lookups in table and batch: a job may move between them. */
const looks = 2

/**
 * A stored job as read by `stored`, or else one of an open batch, which takes two more calls. Throws `job_not_found`.
 */
export async function findJob<Stored>(
  organisationId: string,
  jobId: string,
  stored: () => Promise<Stored | undefined>,
): Promise<Stored | UnexpandedJob> {
  if (!isId('job', jobId)) throw platformError('job_not_found')
  for (let look = 0; look < looks; look++) {
    const found = (await stored()) ?? (await findPlanned(organisationId, jobId))
    if (found !== undefined) return found
  }
  throw platformError('job_not_found')
}

/** A stored job's record. One call. */
export async function storedJob(
  organisationId: string,
  jobId: string,
): Promise<{ job: JobRecord } | { operation: OperationRecord } | undefined> {
  const item = await get(keys.job(organisationId, jobId))
  if (item === undefined) return undefined
  return isOperation(item) ? { operation: parseOperation(item) } : { job: parseJob(item) }
}

/** Undefined if the job is stored by now, or was purged. */
async function findPlanned(organisationId: string, jobId: string): Promise<UnexpandedJob | undefined> {
  const [batchId, index] = [batchIdOf(jobId), indexOf(jobId)]
  const batch = await findBatch(organisationId, batchId)
  if (batch === undefined || index >= batch.submittedCount) throw platformError('job_not_found')
  const { starts, expanded } = batch
  if (starts === undefined || index < expanded) return undefined
  const planned = (await readPendingJobs({ ...batch, starts }, index, index))?.get(index)
  return planned && placed(batch, index, planned)
}

/** All jobs of a batch that are not stored yet. One call; none if the batch is not open. */
export async function listPendingJobs(batch: BatchRecord): Promise<JobRecord[]> {
  const { starts, expanded } = batch
  const planned = starts && (await readPendingJobs({ ...batch, starts }, expanded))
  return [...(planned ?? [])]
    .filter(([index]) => index >= expanded)
    .map(([index, job]) => placed(batch, index, job).job)
}
