import {
  type AcceptedJob,
  defaultDeliverWithinSeconds,
  defaultTimeoutSeconds,
  type Job,
  type JobSubmission,
} from '@platform/contract/job'
import { batchIdOf } from './batches/id.ts'
import { findJob } from './batches/find-job.ts'
import { type Caller } from '../caller.ts'
import { commit } from '../outbox/commit.ts'
import { iso, now } from '../clock.ts'
import * as keys from '../db/keys.ts'
import { create, get, getConsistent, orThrow, patch } from '../db/table.ts'
import { expand } from './batches/expand.ts'
import { platformError } from '../error.ts'
import { isId, newId } from '../id.ts'
import { requestCancel, finishQueued } from './cancel.ts'
import { isTerminal, jobView, parseJob, parsePayload, effectsOfQueued } from './record.ts'
import { payloadOf, type SubmittedPayload } from './submission.ts'
import { parseNodes } from '../clusters/node.ts'
import { isOperationTerminal, isOperation, parseOperation } from '../operations/record.ts'
import { operationView } from '../operations/view.ts'
import { outboxRetryMs, enqueueJob } from '../aws/queues.ts'
import { readResult } from './result.ts'

/** Jobs as callers see them: submit, read, cancel (D25 to D30). */

const attempts = 5

/** Accepts a job. One transaction and one message; with target nodes one read before. */
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
    steps: [
      orThrow(patch(keys.cluster(organisationId, clusterId), { add: { activeJobs: 1, jobs: 1 } }), 'cluster_not_found'),
      create(keys.job(organisationId, job.id), filed),
      create(keys.payload(organisationId, job.id), { payload: payload.text }),
    ],
    answer,
    audit: { action: 'job.submit', resource: job.id, detail: clusterId },
    ...effectsOfQueued(job),
    // Whoever puts the job into the inbox leads its record to the books: one message does both.
    isAnnounced: true,
  })
  await enqueueJob({ organisationId, jobId: job.id })
  return answer
}

async function checkTargets(organisationId: string, clusterId: string, targets: readonly string[]): Promise<void> {
  const item = await get(keys.nodes(organisationId, clusterId))
  const known = new Set(parseNodes(item).map(({ id }) => id))
  if (targets.every((id) => known.has(id))) return
  // Nodes of a cluster that is not there must not look different from the cluster not being there.
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

/** One job with its result. One call; output beyond 32 KiB takes more, and so does a batch's job that is not stored yet. */
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
  // The three are read one by one: the job may have ended after its result was looked for.
  const isMissing = result === undefined && isTerminal(job) && job.startedAtMs !== undefined
  return { job, payload: payload['payload'], result: isMissing ? await get(resultKey) : result }
}

/** Cancels a job: at once while it is Queued, by its relay while it is Running. Two calls. */
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
