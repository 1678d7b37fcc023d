import { type PendingJob, readPendingJobs } from './chunks.ts'
import { batchIdOf, jobIndexOf, jobIdOf } from './id.ts'
import { type BatchRecord, findBatch, storedCount } from './record.ts'
import * as keys from '../../db/keys.ts'
import { getConsistent } from '../../db/table.ts'
import { parseRemovedIds } from '../../clusters/removed.ts'
import { platformError } from '../../error.ts'
import { isId } from '../../id.ts'
import { type JobRecord, parseJob, titleOfPayload } from '../record.ts'
import { isOperation, type OperationRecord, parseOperation } from '../../operations/record.ts'

const isThrottledAtStart = ({ maxConcurrency }: BatchRecord, index: number): boolean =>
  maxConcurrency !== undefined && index >= maxConcurrency

export const newJobOf = (batch: BatchRecord, index: number, pendingJob: PendingJob) => ({
  id: jobIdOf(batch.id, index),
  organisationId: batch.organisationId,
  clusterId: pendingJob.clusterId,
  batchId: batch.id,
  type: 'InvokeScript' as const,
  status: 'Queued' as const,
  timeoutSeconds: pendingJob.timeoutSeconds,
  createdAtMs: batch.createdAtMs,
  createdBy: batch.createdBy,
  ...(batch.username !== undefined && { username: batch.username }),
  ...(batch.via !== undefined && { via: batch.via }),
  ...(batch.name !== undefined && { name: batch.name }),
  expiresAtMs: batch.createdAtMs + pendingJob.deliverWithinSeconds * 1000,
  deliverWithinSeconds: pendingJob.deliverWithinSeconds,
  ...(isThrottledAtStart(batch, index) && { isThrottled: true as const }),
})

/** A job read from a chunk of its batch, because its record may not be stored yet. `payload` is JSON text. */
export interface UnstoredJob {
  job: JobRecord
  payload: string
  isPending: true
}

const unstoredJob = (batch: BatchRecord, index: number, pendingJob: PendingJob): UnstoredJob => ({
  job: {
    ...parseJob(newJobOf(batch, index, pendingJob)),
    reason: batch.reason,
    title: titleOfPayload(pendingJob.payload),
  },
  payload: pendingJob.payload,
  isPending: true,
})

/** A job may move from a chunk to a record of its own between two lookups. */
const maxAttempts = 2

export async function findJob<Stored>(
  organisationId: string,
  jobId: string,
  readStored: () => Promise<Stored | undefined>,
): Promise<Stored | UnstoredJob> {
  if (!isId('job', jobId)) throw platformError('job_not_found')
  for (let attempt = 0; attempt < maxAttempts; attempt++) {
    const job = (await readStored()) ?? (await findUnstored(organisationId, jobId))
    if (job !== undefined) return job
  }
  throw platformError('job_not_found')
}

export async function findStoredJob(
  organisationId: string,
  jobId: string,
): Promise<{ job: JobRecord } | { operation: OperationRecord } | undefined> {
  const [item, removed] = await getConsistent([keys.job(organisationId, jobId), keys.removedClusters(organisationId)])
  if (item === undefined) return undefined
  if (isOperation(item)) return { operation: parseOperation(item) }
  const job = parseJob(item)
  if (parseRemovedIds(removed).has(job.clusterId)) throw platformError('job_not_found')
  return { job }
}

async function findUnstored(organisationId: string, jobId: string): Promise<UnstoredJob | undefined> {
  const [batchId, index] = [batchIdOf(jobId), jobIndexOf(jobId)]
  const batch = await findBatch(organisationId, batchId)
  if (batch === undefined || index >= batch.submittedCount) throw platformError('job_not_found')
  const { starts } = batch
  if (starts === undefined || index < storedCount(batch)) return undefined
  const pendingJob = (await readPendingJobs({ ...batch, starts }, index, index))?.get(index)
  return pendingJob && unstoredJob(batch, index, pendingJob)
}

/** Some of the jobs may be stored already. */
export async function listUnstoredJobs(batch: BatchRecord): Promise<JobRecord[]> {
  const { starts } = batch
  const pendingJobs = starts && (await readPendingJobs({ ...batch, starts }, storedCount(batch)))
  return [...(pendingJobs ?? [])]
    .filter(([index]) => index >= storedCount(batch))
    .map(([index, job]) => unstoredJob(batch, index, job).job)
}
