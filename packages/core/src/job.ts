import {
  type AcceptedJob,
  defaultDeliverWithinSeconds,
  defaultTimeoutSeconds,
  InvokeScriptPayload,
  type Job,
  type JobSubmission,
  jobTypes,
} from '@platform/contract/job'
import { type Caller } from './caller.ts'
import { iso, now } from './clock.ts'
import * as keys from './db/keys.ts'
import { create, get, getAll, patch, remove, transact } from './db/table.ts'
import { fault } from './fault.ts'
import { isId, newId } from './id.ts'
import { isOver, type JobRow, jobView, parseJob, parsePayload } from './job-row.ts'
import { parseNodes } from './node.ts'
import { announceJob } from './queue.ts'
import { readResult } from './result.ts'
import { parseBody } from './valid.ts'
import { ring } from './wake.ts'

/** Jobs as callers see them: submit, read, cancel (D25 to D30). */

/** A job that nobody has announced this long after its submission is announced again by the sweep. */
export const announceAgainMs = 30_000
/** A running job that was asked to stop and is not confirmed stopped ends after this long (D25). */
export const cancelConfirmMs = 60_000
const payloadBytes = 262_144
const attempts = 5

/** Accepts a job. One transaction and one message; with target nodes one read before. */
export async function submit(caller: Caller, submission: JobSubmission): Promise<AcceptedJob> {
  const { organisationId } = caller
  const payload = payloadOf(submission)
  const clusterId = isId('clus', submission.clusterId) ? submission.clusterId : undefined
  if (clusterId === undefined) throw fault('cluster_not_found')
  if (payload.targetNodeIds) await checkTargets(organisationId, clusterId, payload.targetNodeIds)

  const job = newJob(caller, clusterId, payload, submission.deliverWithinSeconds)
  const refusal = await transact([
    patch(keys.cluster(organisationId, clusterId), { add: { activeJobs: 1 } }),
    create(keys.job(organisationId, job.id), {
      ...job,
      ...keys.jobFiling(job),
      ...keys.due(job.id, now() + announceAgainMs),
    }),
    create(keys.payload(organisationId, job.id), { payload: JSON.stringify(payload) }),
  ])
  if (refusal) throw fault('cluster_not_found')
  await announceJob({ organisationId, jobId: job.id })
  return { id: job.id, clusterId, type: 'InvokeScript', status: 'Queued', createdAt: iso(job.createdAtMs) }
}

function payloadOf({ type, payload }: JobSubmission): InvokeScriptPayload {
  if (type !== 'InvokeScript') {
    throw fault((jobTypes as readonly string[]).includes(type) ? 'job_type_not_submittable' : 'unknown_job_type')
  }
  const parsed = parseBody(InvokeScriptPayload, payload, ['payload'])
  if (Buffer.byteLength(JSON.stringify(parsed)) > payloadBytes) throw fault('payload_too_large')
  return parsed
}

async function checkTargets(organisationId: string, clusterId: string, targets: readonly string[]): Promise<void> {
  const item = await get(keys.nodes(organisationId, clusterId))
  const known = new Set(parseNodes(item).map(({ id }) => id))
  if (targets.every((id) => known.has(id))) return
  // Nodes of a cluster that is not there must not look different from the cluster not being there.
  const isThere = item ?? (await get(keys.cluster(organisationId, clusterId)))
  throw fault(isThere === undefined ? 'cluster_not_found' : 'node_not_in_cluster')
}

const newJob = (
  { organisationId, userId }: Caller,
  clusterId: string,
  payload: InvokeScriptPayload,
  deliverWithinSeconds = defaultDeliverWithinSeconds,
) => ({
  id: newId('job'),
  organisationId,
  clusterId,
  type: 'InvokeScript' as const,
  status: 'Queued' as const,
  timeoutSeconds: payload.timeoutSeconds ?? defaultTimeoutSeconds,
  createdAtMs: now(),
  createdBy: userId,
  expiresAtMs: now() + deliverWithinSeconds * 1000,
})

/** One job with its result. One call; output beyond 32 KiB takes more. */
export async function read({ organisationId }: Caller, jobId: string): Promise<Job> {
  if (!isId('job', jobId)) throw fault('job_not_found')
  const [row, payload, result] = await getAll([
    keys.job(organisationId, jobId),
    keys.payload(organisationId, jobId),
    keys.result(organisationId, jobId),
  ])
  if (row === undefined || payload === undefined) throw fault('job_not_found')
  const job = parseJob(row)
  const view = jobView(job, parsePayload(payload['payload']))
  return result === undefined ? view : { ...view, result: await readResult(job, result) }
}

/** Cancels a job: at once while it is Queued, by its relay while it is Running. Three calls. */
export async function cancel(caller: Caller, jobId: string): Promise<Job> {
  for (let attempt = 0; attempt < attempts; attempt++) {
    const item = isId('job', jobId) ? await get(keys.job(caller.organisationId, jobId)) : undefined
    if (item === undefined) throw fault('job_not_found')
    const job = parseJob(item)
    if (isOver(job)) throw fault('job_already_finished')
    const isDone =
      job.status === 'Queued' ? await endQueued(job, 'Cancelled', 'cancelled_by_user') : await askToStop(job)
    if (isDone) return read(caller, jobId)
  }
  throw fault('conflict')
}

/** Ends a job that no relay has claimed; answers whether it was still as read. */
export async function endQueued(
  job: JobRow,
  status: 'Cancelled' | 'Failed',
  statusReason: NonNullable<JobRow['statusReason']>,
): Promise<boolean> {
  const isDispatched = job.dispatchedAtMs !== undefined
  const refusal = await transact([
    patch(
      keys.job(job.organisationId, job.id),
      { set: { status, statusReason, completedAtMs: now() }, remove: ['duepk', 'duesk'] },
      { status: { is: 'Queued' }, dispatchedAtMs: isDispatched ? { present: true } : { absent: true } },
    ),
    patch(keys.cluster(job.organisationId, job.clusterId), {
      add: { activeJobs: -1, ...(isDispatched ? { waitingJobs: -1 } : {}) },
    }),
    ...(isDispatched ? [remove(keys.inbox(job.clusterId, job.id))] : []),
  ])
  return refusal === undefined
}

async function askToStop(job: JobRow): Promise<boolean> {
  if (job.cancelRequestedAtMs === undefined) {
    const set = { cancelRequestedAtMs: now(), ...keys.due(job.id, now() + cancelConfirmMs) }
    const isRunning = { status: { is: 'Running' }, cancelRequestedAtMs: { absent: true } } as const
    if (await transact([patch(keys.job(job.organisationId, job.id), { set }, isRunning)])) return false
  }
  await ring(job.clusterId)
  return true
}
