import { type AcceptedBatch, type Batch, batchLimit, type BatchSubmission } from '@platform/contract/batch'
import { defaultDeliverWithinSeconds, InvokeScriptPayload } from '@platform/contract/job'
import { createBatch } from './create.ts'
import { parseRemovalGuard } from '../../clusters/removal-guard.ts'
import { type BatchRecord, batchView, findBatch, parseBatch, readJobsOf } from './record.ts'
import { type SubmittedJob, parseSubmittedJobs, submittedJobFactory } from './submission.ts'
import { startOnTarget } from '../../clusters/target.ts'
import type { Caller } from '../../caller.ts'
import { commit, readWithRights } from '../../outbox/commit.ts'
import { now } from '../../clock.ts'
import * as keys from '../../db/keys.ts'
import { get, getConsistent, getMany, type Item, patch } from '../../db/table.ts'
import { platformError } from '../../error.ts'
import { isId } from '../../id.ts'
import { pageOfRange } from '../../db/index-page.ts'
import { paged, type PageQuery } from '../../db/paging.ts'
import { type JobRecord, payloadText } from '../record.ts'
import { enqueueBatch } from '../../aws/queues.ts'

export async function submit(caller: Caller, submission: BatchSubmission): Promise<AcceptedBatch> {
  const { jobs = [], target, type = '', payload = {}, deliverWithinSeconds, expectedCount, ...settings } = submission
  if (target === undefined) return createBatch(caller, { jobs: parseSubmittedJobs(jobs), ...settings })
  const jobOf = submittedJobFactory({ type, payload, deliverWithinSeconds })
  return startOnTarget(caller, { target, expectedCount, limit: batchLimit }, (clusterIds) =>
    createBatch(caller, { jobs: clusterIds.map(jobOf), ...settings, resolvedCount: clusterIds.length }),
  )
}

export const read = async ({ organisationId }: Caller, batchId: string): Promise<Batch> => {
  const batch = await findBatch(organisationId, batchId)
  if (batch === undefined) throw platformError('batch_not_found')
  return batchView(batch)
}

async function authorizedBatch(caller: Caller, batchId: string): Promise<BatchRecord> {
  const itemKeys = [keys.batch(caller.organisationId, batchId)]
  const [item] = isId('batch', batchId) ? await readWithRights(caller, itemKeys) : []
  if (item === undefined) throw platformError('batch_not_found')
  return parseBatch(item)
}

export const list = ({ organisationId }: Caller, query: PageQuery) =>
  paged(['batches', organisationId], query, async (page) => {
    const { accepted: totalCount } = parseRemovalGuard(
      await get(keys.removalGuard(organisationId), { mayBeStale: true }),
    )
    const range = { index: 'gsi1', pk: keys.organisationBatches(organisationId) } as const
    const { keys: pageKeys, next } = await pageOfRange(range, async () => totalCount, page)
    const items = pageKeys.length === 0 ? [] : await getConsistent(pageKeys, { mayBeStale: true })
    const batches = items.filter((item) => item !== undefined).map((item) => batchView(parseBatch(item)))
    return { items: batches, totalCount, next }
  })

/** Marks the batch as cancelled. The batch worker then cancels its jobs. */
export async function cancel(caller: Caller, batchId: string): Promise<Batch> {
  const { organisationId } = caller
  const batch = await authorizedBatch(caller, batchId)
  if (batch.finishedAtMs !== undefined) throw platformError('batch_already_finished')
  const cancelledBatch = { ...batch, cancelRequestedAtMs: batch.cancelRequestedAtMs ?? now() }
  if (batch.cancelRequestedAtMs === undefined) {
    const { cancelRequestedAtMs } = cancelledBatch
    const uncancelledCondition = { finishedAtMs: { absent: true }, cancelRequestedAtMs: { absent: true } } as const
    const failure = await commit(caller, {
      writes: [patch(keys.batch(organisationId, batchId), { set: { cancelRequestedAtMs } }, uncancelledCondition)],
      response: batchView(cancelledBatch),
      audit: { action: 'batch.cancel', resource: batchId },
      isEnqueued: true,
    })
    if (failure?.item && parseBatch(failure.item).finishedAtMs !== undefined)
      throw platformError('batch_already_finished')
  }
  await enqueueBatch({ organisationId, batchId })
  return batchView(cancelledBatch)
}

export async function retry(caller: Caller, batchId: string): Promise<AcceptedBatch> {
  const batch = await authorizedBatch(caller, batchId)
  const jobs = batch.finishedAtMs === undefined ? [] : await jobsToRetry(batch)
  if (jobs.length === 0) throw platformError('nothing_to_retry')
  const { maxConcurrency, maxErrors, name, reason } = batch
  return createBatch(caller, { jobs, maxConcurrency, maxErrors, name, reason, retryOf: batchId })
}

/** Skips jobs of removed clusters, because a batch with an unknown cluster is rejected as a whole. */
async function jobsToRetry({ organisationId, id }: BatchRecord): Promise<SubmittedJob[]> {
  const records = (await readJobsOf(organisationId, id)).toReversed()
  const jobsToRepeat = records.filter(({ status }) => status === 'Failed' || status === 'Cancelled')
  const clusterIds = [...new Set(jobsToRepeat.map(({ clusterId }) => clusterId))]
  const [clusters, payloads] = await Promise.all([
    getMany(clusterIds.map((clusterId) => keys.cluster(organisationId, clusterId))),
    getMany(jobsToRepeat.map((record) => keys.payload(organisationId, record.id))),
  ])
  const removedIds = new Set(clusterIds.filter((_, index) => clusters[index] === undefined))
  return jobsToRepeat.flatMap((record, index) =>
    removedIds.has(record.clusterId) ? [] : resubmittedJob(record, payloads[index]),
  )
}

function resubmittedJob(job: JobRecord, item: Item | undefined): SubmittedJob[] {
  const { clusterId, timeoutSeconds, deliverWithinSeconds } = job
  const payload = payloadText(job, item)
  if (payload === undefined) return []
  const { targetNodeIds } = InvokeScriptPayload.parse(JSON.parse(payload))
  return [
    {
      clusterId,
      timeoutSeconds,
      deliverWithinSeconds: deliverWithinSeconds ?? defaultDeliverWithinSeconds,
      payload,
      targetNodeIds,
    },
  ]
}
