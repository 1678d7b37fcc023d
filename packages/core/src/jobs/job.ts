import {
  type AcceptedJob,
  type BatchJob,
  defaultDeliverWithinSeconds,
  defaultTimeoutSeconds,
  type Job,
  type JobSubmission,
  InvokeScriptPayload,
  jobTypes,
} from '@platform/contract/job'
import { wakeRelay } from '../aws/wake-relay.ts'
import type { Caller } from '../caller.ts'
import { iso, now } from '../clock.ts'
import { lastJobOf } from '../clusters/counters.ts'
import { parseRemovedIds } from '../clusters/removed.ts'
import { parseNodes } from '../clusters/node.ts'
import * as keys from '../db/keys.ts'
import { get, getConsistent, patch, type WriteItem } from '../db/table.ts'
import { platformError, storeContentionError } from '../error.ts'
import { isId, newId } from '../id.ts'
import { failpoint } from '../lib/failpoint.ts'
import { compress } from '../lib/compression.ts'
import { parseBody } from '../lib/validate.ts'
import { isOperationTerminal, isOperation, parseOperation } from '../operations/record.ts'
import { operationView } from '../operations/view.ts'
import { commit, readWithRights } from '../outbox/commit.ts'
import { admissionWrites, retryAdmission } from '../accounts/active-jobs.ts'
import { expand } from './batches/expand.ts'
import { findJob } from './batches/find-job.ts'
import { batchIdOf } from './batches/id.ts'
import { parseBatch } from './batches/record.ts'
import { requestCancel, finishQueued } from './cancel.ts'
import { firstCheckOf } from './claim.ts'
import { enterInbox, inboxEntryCounts, inboxListing } from './inbox.ts'
import { isTerminal, jobView, parseJob, parsePayload, payloadText, createWrites, effectsOfQueued } from './record.ts'
import { describeScripts } from './describe-scripts.ts'
import { readResult } from './result.ts'
import { submitterOf } from '../submitter.ts'

const maxAttempts = 5

export async function submit(caller: Caller, submission: JobSubmission): Promise<AcceptedJob> {
  const { organisationId } = caller
  const payload = payloadOf(submission)
  const clusterId = isId('clus', submission.clusterId) ? submission.clusterId : undefined
  if (clusterId === undefined) throw platformError('cluster_not_found')
  // A read costs less than the checks of the caller's rights in the transaction.
  if (payload.targetNodeIds) await checkTargets(caller, clusterId, payload.targetNodeIds)
  else await readWithRights(caller, [])

  const job = newJob(caller, clusterId, payload, submission)
  const response: AcceptedJob = {
    id: job.id,
    clusterId,
    type: 'InvokeScript',
    status: 'Queued',
    createdAt: iso(job.createdAtMs),
  }
  const item = { ...job, ...keys.jobIndexKeys(job), ...keys.dueIndexKeys(job.id, firstCheckOf(job, job.createdAtMs)) }
  const counters = { activeJobs: 1, jobs: 1 }
  const [clusterKey, set] = [keys.cluster(organisationId, clusterId), lastJobOf(job.id)]
  const listing = inboxListing(job.id)
  const listedWrites = [
    patch(clusterKey, { set, add: { ...counters, ...listing.add } }, listing.condition),
    ...createWrites({ ...item, isListed: true }, payload.text),
  ]
  const countWrite = patch(clusterKey, { set, add: { ...counters, ...inboxEntryCounts } })
  const inboxWrites = [countWrite, ...createWrites(item, payload.text), enterInbox(job)]
  const store = (writes: readonly WriteItem[], admission: readonly WriteItem[]) =>
    commit(caller, {
      writes: [...writes, ...admission],
      response,
      audit: { action: 'job.submit', resource: job.id, detail: `${clusterId}, ${describeScripts([payload.script])}` },
      ...effectsOfQueued(job),
      canWait: true,
    })
  let [writes, admission] = [listedWrites, admissionWrites(organisationId, job.id, 1)]
  let failure = await store(writes, admission)
  for (let attempt = 1; failure !== undefined; attempt++) {
    if (attempt === maxAttempts) throw storeContentionError()
    if (failure.index === 0 && failure.item === undefined) throw platformError('cluster_not_found')
    if (failure.index === 0) writes = inboxWrites
    else admission = await retryAdmission(organisationId, 1)
    failure = await store(writes, admission)
  }
  await failpoint('submit.written')
  await wakeRelay(clusterId)
  return response
}

async function checkTargets(caller: Caller, clusterId: string, targets: readonly string[]): Promise<void> {
  const { organisationId } = caller
  const [item] = await readWithRights(caller, [keys.nodes(organisationId, clusterId)])
  const nodeIds = new Set(parseNodes(item).map(({ id }) => id))
  if (targets.every((id) => nodeIds.has(id))) return
  // The error for an unknown cluster takes precedence over the error for its nodes.
  const clusterItem = item ?? (await get(keys.cluster(organisationId, clusterId)))
  throw platformError(clusterItem === undefined ? 'cluster_not_found' : 'node_not_in_cluster')
}

const newJob = (
  caller: Caller,
  clusterId: string,
  { timeoutSeconds = defaultTimeoutSeconds }: SubmittedPayload,
  { deliverWithinSeconds = defaultDeliverWithinSeconds, name, reason }: JobSubmission,
) => {
  const createdAtMs = now()
  return {
    id: newId('job', createdAtMs),
    organisationId: caller.organisationId,
    clusterId,
    type: 'InvokeScript' as const,
    status: 'Queued' as const,
    timeoutSeconds,
    createdAtMs,
    ...(name !== undefined && { name }),
    ...(reason !== undefined && { reason }),
    ...submitterOf(caller),
    expiresAtMs: createdAtMs + deliverWithinSeconds * 1000,
  }
}

export async function read({ organisationId }: Caller, jobId: string): Promise<Job> {
  const lookup = await findJob(organisationId, jobId, () => readStoredJob(organisationId, jobId))
  if ('operation' in lookup) return operationView(lookup.operation)
  const { job, payload } = lookup
  const view = jobView(job, parsePayload(payload))
  const result = 'result' in lookup ? lookup.result : undefined
  const hasResult = isTerminal(job) && (result ?? job.result) !== undefined
  return hasResult ? { ...view, result: await readResult(job, result, view.payload) } : view
}

async function readStoredJob(organisationId: string, jobId: string, readItems = getConsistent) {
  const resultKey = keys.result(organisationId, jobId)
  // The reason of a batch is stored with the batch only.
  const [record, payload, result, removedItem, batch] = await readItems([
    keys.job(organisationId, jobId),
    keys.payload(organisationId, jobId),
    resultKey,
    keys.removedClusters(organisationId),
    keys.batch(organisationId, batchIdOf(jobId)),
  ])
  if (record && isOperation(record)) return { operation: parseOperation(record) }
  if (!record) return undefined
  const storedJob = parseJob(record)
  const job = storedJob.batchId === undefined || !batch ? storedJob : { ...storedJob, reason: parseBatch(batch).reason }
  const text = payloadText(job, payload)
  if (text === undefined) return undefined
  if (parseRemovedIds(removedItem).has(job.clusterId)) throw platformError('job_not_found')
  // The reads are not one snapshot: the job may have ended after its result was read.
  const isMissing = (result ?? job.result) === undefined && isTerminal(job) && job.startedAtMs !== undefined
  return { job, payload: text, result: isMissing ? await get(resultKey) : result }
}

export async function cancel(caller: Caller, jobId: string): Promise<Job> {
  const { organisationId } = caller
  const readItems: typeof getConsistent = (itemKeys) => readWithRights(caller, itemKeys)
  for (let attempt = 0; attempt < maxAttempts; attempt++) {
    const lookup = await findJob(organisationId, jobId, () => readStoredJob(organisationId, jobId, readItems))
    if ('operation' in lookup)
      throw platformError(isOperationTerminal(lookup.operation) ? 'job_already_finished' : 'job_not_cancellable')
    if ('isPending' in lookup) {
      await expand(organisationId, batchIdOf(jobId))
      continue
    }
    const { job, payload } = lookup
    if (isTerminal(job)) throw platformError('job_already_finished')
    const isQueued = job.status === 'Queued'
    const atMs = now()
    const changedJob = isQueued
      ? { ...job, ...cancelledEnd, completedAtMs: atMs }
      : { ...job, cancelRequestedAtMs: job.cancelRequestedAtMs ?? atMs }
    const response = jobView(changedJob, parsePayload(payload))
    const context = { atMs, response }
    const isCommitted = await (isQueued
      ? finishQueued(caller, [job], cancelledEnd, context)
      : requestCancel(caller, job, context))
    if (isCommitted) return response
  }
  throw platformError('conflict')
}

const cancelledEnd = { status: 'Cancelled', statusReason: 'cancelled_by_user' } as const

const maxBytesBesidesScript = 196_608
/** An item of the store has at most 400 KiB. */
const maxStoredBytes = 390_000

/** `text` is the payload as JSON. */
export interface SubmittedPayload extends InvokeScriptPayload {
  text: string
}

/** `basePath` is the path of the submission in the request body, for error details. */
export function payloadOf({ type, payload }: BatchJob, basePath: readonly PropertyKey[] = []): SubmittedPayload {
  if (type !== 'InvokeScript') {
    throw platformError(
      (jobTypes as readonly string[]).includes(type) ? 'job_type_not_submittable' : 'unknown_job_type',
    )
  }
  const parsed = parseBody(InvokeScriptPayload, payload, [...basePath, 'payload'])
  const text = JSON.stringify(parsed)
  const { script: _, ...rest } = parsed
  const isTooLarge =
    Buffer.byteLength(JSON.stringify(rest)) > maxBytesBesidesScript ||
    (text.length > maxStoredBytes / 4 && compress(text).length > maxStoredBytes)
  if (isTooLarge) throw platformError('payload_too_large')
  return { ...parsed, text }
}
