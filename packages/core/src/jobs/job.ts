import {
  type AcceptedJob,
  defaultDeliverWithinSeconds,
  defaultTimeoutSeconds,
  type Job,
  type JobSubmission,
  InvokeScriptPayload,
  jobTypes,
} from '@platform/contract/job'
import { outboxRetryMs, enqueueJob } from '../aws/queues.ts'
import type { Caller } from '../caller.ts'
import { iso, now } from '../clock.ts'
import { parseNodes } from '../clusters/node.ts'
import * as keys from '../db/keys.ts'
import { create, get, getConsistent, orThrow, patch } from '../db/table.ts'
import { platformError } from '../error.ts'
import { isId, newId } from '../id.ts'
import { parseBody } from '../lib/validate.ts'
import { isOperationTerminal, isOperation, parseOperation } from '../operations/record.ts'
import { operationView } from '../operations/view.ts'
import { commit } from '../outbox/commit.ts'
import { expand } from './batches/expand.ts'
import { findJob } from './batches/find-job.ts'
import { batchIdOf } from './batches/id.ts'
import { requestCancel, finishQueued } from './cancel.ts'
import { isTerminal, jobView, parseJob, parsePayload, effectsOfQueued } from './record.ts'
import { readResult } from './result.ts'

/** Jobs as callers see them: submit, read, cancel. */

const attempts = 5

/** Accepts a job. One transaction and one message; with target nodes one more read. */
export async function submit(caller: Caller, submission: JobSubmission): Promise<AcceptedJob> {
  const { organisationId } = caller
  const payload = payloadOf(submission)
  const clusterId = isId('clus', submission.clusterId) ? submission.clusterId : undefined
  if (clusterId === undefined) throw platformError('cluster_not_found')
  if (payload.targetNodeIds) await checkTargets(organisationId, clusterId, payload.targetNodeIds)

  const job = newJob(caller, clusterId, payload, submission.deliverWithinSeconds)
  const answer: AcceptedJob = {
    id: job.id,
    clusterId,
    type: 'InvokeScript',
    status: 'Queued',
    createdAt: iso(job.createdAtMs),
  }
  const filed = { ...job, ...keys.jobIndexKeys(job), ...keys.due(job.id, now() + outboxRetryMs) }
  await commit(caller, {
    writes: [
      orThrow(patch(keys.cluster(organisationId, clusterId), { add: { activeJobs: 1, jobs: 1 } }), 'cluster_not_found'),
      create(keys.job(organisationId, job.id), filed),
      create(keys.payload(organisationId, job.id), { payload: payload.text }),
    ],
    answer,
    audit: { action: 'job.submit', resource: job.id, detail: clusterId },
    ...effectsOfQueued(job),
    // The dispatch enqueues the projections too, which saves a message.
    isEnqueued: true,
  })
  await enqueueJob({ organisationId, jobId: job.id })
  return answer
}

async function checkTargets(organisationId: string, clusterId: string, targets: readonly string[]): Promise<void> {
  const item = await get(keys.nodes(organisationId, clusterId))
  const known = new Set(parseNodes(item).map(({ id }) => id))
  if (targets.every((id) => known.has(id))) return
  // An unknown cluster takes precedence over its nodes.
  const isThere = item ?? (await get(keys.cluster(organisationId, clusterId)))
  throw platformError(isThere === undefined ? 'cluster_not_found' : 'node_not_in_cluster')
}

const newJob = (
  { organisationId, userId }: Caller,
  clusterId: string,
  { timeoutSeconds = defaultTimeoutSeconds }: SubmittedPayload,
  deliverWithinSeconds = defaultDeliverWithinSeconds,
) => {
  const createdAtMs = now()
  return {
    id: newId('job'),
    organisationId,
    clusterId,
    type: 'InvokeScript' as const,
    status: 'Queued' as const,
    timeoutSeconds,
    createdAtMs,
    createdBy: userId,
    expiresAtMs: createdAtMs + deliverWithinSeconds * 1000,
  }
}

/** One job with its result. One call; more for output beyond 32 KiB, and for a batch's job that is not stored yet. */
export async function read({ organisationId }: Caller, jobId: string): Promise<Job> {
  const found = await findJob(organisationId, jobId, () => storedWhole(organisationId, jobId))
  if ('operation' in found) return operationView(found.operation)
  const { job, payload, ...rest } = found
  const view = jobView(job, parsePayload(payload))
  const result = 'result' in rest ? rest.result : undefined
  return result === undefined ? view : { ...view, result: await readResult(job, result) }
}

async function storedWhole(organisationId: string, jobId: string) {
  const resultKey = keys.result(organisationId, jobId)
  const [row, payload, result] = await getConsistent([
    keys.job(organisationId, jobId),
    keys.payload(organisationId, jobId),
    resultKey,
  ])
  if (row && isOperation(row)) return { operation: parseOperation(row) }
  if (!row || !payload) return undefined
  const job = parseJob(row)
  // The items are not read atomically: the job may have ended after its result was read.
  const isMissing = result === undefined && isTerminal(job) && job.startedAtMs !== undefined
  return { job, payload: payload['payload'], result: isMissing ? await get(resultKey) : result }
}

/** Cancels a job: a Queued one at once, a Running one by its relay. Two calls. */
export async function cancel(caller: Caller, jobId: string): Promise<Job> {
  const { organisationId } = caller
  for (let attempt = 0; attempt < attempts; attempt++) {
    const found = await findJob(organisationId, jobId, () => storedWhole(organisationId, jobId))
    if ('operation' in found)
      throw platformError(isOperationTerminal(found.operation) ? 'job_already_finished' : 'job_not_cancellable')
    if ('isPlanned' in found) {
      await expand(organisationId, batchIdOf(jobId))
      continue
    }
    const { job, payload } = found
    if (isTerminal(job)) throw platformError('job_already_finished')
    const isQueued = job.status === 'Queued'
    const atMs = now()
    const after = isQueued
      ? { ...job, ...cancelled, completedAtMs: atMs }
      : { ...job, cancelRequestedAtMs: job.cancelRequestedAtMs ?? atMs }
    const answer = jobView(after, parsePayload(payload))
    const occasion = { atMs, answer }
    const isDone = await (isQueued
      ? finishQueued(caller, [job], cancelled, occasion)
      : requestCancel(caller, job, occasion))
    if (isDone) return answer
  }
  throw platformError('conflict')
}

const cancelled = { status: 'Cancelled', statusReason: 'cancelled_by_user' } as const

/** Limit of a submitted job, alone or in a batch. */

const payloadBytes = 262_144

/** A valid payload with its JSON, which the relay receives. */
export interface SubmittedPayload extends InvokeScriptPayload {
  text: string
}

/**
 * Validates the payload of a submission `under` a path of the body. Throws `unknown_job_type`,
 * `job_type_not_submittable`, `validation_failed` or `payload_too_large`.
 */
export function payloadOf({ type, payload }: JobSubmission, under: readonly PropertyKey[] = []): SubmittedPayload {
  if (type !== 'InvokeScript') {
    throw platformError(
      (jobTypes as readonly string[]).includes(type) ? 'job_type_not_submittable' : 'unknown_job_type',
    )
  }
  const parsed = parseBody(InvokeScriptPayload, payload, [...under, 'payload'])
  const text = JSON.stringify(parsed)
  if (Buffer.byteLength(text) > payloadBytes) throw platformError('payload_too_large')
  return { ...parsed, text }
}
