import { batchLimit } from '@platform/contract/batch'
import type { ErrorDetail } from '@platform/contract/common'
import { BatchJob, defaultDeliverWithinSeconds, defaultTimeoutSeconds } from '@platform/contract/job'
import type { PendingJob } from './chunks.ts'
import { PlatformError, platformError, validationFailedError } from '../../error.ts'
import { payloadOf } from '../job.ts'
import { maxDetails, parseBody } from '../../lib/validate.ts'

export interface SubmittedJob extends PendingJob {
  targetNodeIds?: readonly string[] | undefined
}

/** Throws `validation_failed` with the errors of all jobs, up to a limit, so that the caller can fix them at once. */
export function parseSubmittedJobs(values: readonly unknown[]): SubmittedJob[] {
  if (values.length > batchLimit) throw platformError('batch_limit_exceeded')
  const details: ErrorDetail[] = []
  const jobs: SubmittedJob[] = []
  for (const [index, value] of values.entries()) {
    try {
      jobs.push(parseSubmittedJob(value, ['jobs', index]))
    } catch (error) {
      if (!(error instanceof PlatformError) || error.code !== 'validation_failed') throw error
      details.push(...(error.extra.details ?? []))
      if (details.length >= maxDetails) break
    }
  }
  if (details.length > 0) throw validationFailedError(details)
  return jobs
}

export function submittedJobFactory(job: Omit<BatchJob, 'clusterId'>): (clusterId: string) => SubmittedJob {
  const submittedJob = jobFrom({ ...job, clusterId: '' }, [])
  return (clusterId) => ({ ...submittedJob, clusterId })
}

const parseSubmittedJob = (value: unknown, path: readonly PropertyKey[]): SubmittedJob =>
  jobFrom(parseBody(BatchJob, value, path), path)

function jobFrom(submission: BatchJob, path: readonly PropertyKey[]): SubmittedJob {
  const { text, targetNodeIds, timeoutSeconds = defaultTimeoutSeconds } = payloadOf(submission, path)
  const { clusterId, deliverWithinSeconds = defaultDeliverWithinSeconds } = submission
  return { clusterId, timeoutSeconds, deliverWithinSeconds, payload: text, targetNodeIds }
}
