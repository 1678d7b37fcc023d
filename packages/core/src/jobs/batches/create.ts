import type { AcceptedBatch } from '@platform/contract/batch'
import { admissionWrites, retryAdmission } from '../../accounts/active-jobs.ts'
import { describeScripts } from '../describe-scripts.ts'
import { parsePayload, titleOfPayload } from '../record.ts'
import { submitterOf } from '../../submitter.ts'
import { clustersOf, storeChunks } from './chunks.ts'
import { type RemovalGuard, isGuardCurrent, openBatchWrite, parseRemovalGuard } from '../../clusters/removal-guard.ts'
import { jobIdOf, newBatchId } from './id.ts'
import type { SubmittedJob } from './submission.ts'
import type { Caller } from '../../caller.ts'
import { commit, readWithRights } from '../../outbox/commit.ts'
import { iso, now } from '../../clock.ts'
import { config } from '../../config.ts'
import { countCallWrite, counterOf, limitExceededError, perMinute } from '../../db/call-limit.ts'
import * as keys from '../../db/keys.ts'
import { check, create, getMany, orThrow, backOff, type WriteItem } from '../../db/table.ts'
import type { ConditionFailure } from '../../db/transact.ts'
import { failpoint } from '../../lib/failpoint.ts'
import { platformError, storeContentionError } from '../../error.ts'
import { isId, timeMsOf } from '../../id.ts'
import { parseNodes } from '../../clusters/node.ts'
import { outboxRetryMs, enqueueBatch } from '../../aws/queues.ts'

const maxAttempts = 8
const maxKeysWithRights = 98

export interface BatchRequest {
  jobs: readonly SubmittedJob[]
  maxConcurrency?: number | undefined
  maxErrors?: number | undefined
  name?: string | undefined
  reason?: string | undefined
  retryOf?: string
  /** The number of clusters of the target, if the batch has a target. */
  resolvedCount?: number
}

/**
 * Accepts all jobs or none. Throws `cluster_forbidden` if a cluster is not in the organisation, and
 * `node_not_in_cluster` if a target node is not in the cluster of its job. Only accepted batches count towards the
 * limit per minute.
 */
export async function createBatch(caller: Caller, request: BatchRequest): Promise<AcceptedBatch> {
  const { organisationId } = caller
  const clusterIds = clustersOf(request.jobs)
  if (!clusterIds.every((id) => isId('clus', id))) throw platformError('cluster_forbidden')
  const response = responseFor(newBatchId(), request)
  const counter = counterOf(perMinute(`batches:${organisationId}`, config.PLAT_LIMIT_BATCH_PER_MINUTE))
  const writes = batchWrites(caller, request, response)
  let guard = await checkRequest(caller, clusterIds, request.jobs)
  let admission = admissionWrites(organisationId, response.batchId, request.jobs.length)
  for (let attempt = 1; ; attempt++) {
    const failure = await store(caller, request, response, [
      // The transaction checks the first cluster, so that a batch of 500 clusters needs one fewer read request.
      orThrow(check(keys.cluster(organisationId, clusterIds[0] ?? ''), { pk: { present: true } }), 'cluster_forbidden'),
      countCallWrite(counter),
      openBatchWrite(organisationId, guard, response.batchId),
      ...writes,
      ...admission,
    ])
    if (failure === undefined) break
    if (failure.index === 1) throw limitExceededError(counter)
    if (attempt === maxAttempts) throw storeContentionError()
    await backOff(attempt)
    if (failure.index === 2) {
      guard = parseRemovalGuard(failure.item)
      await checkClusters(organisationId, clusterIds)
    } else admission = await retryAdmission(organisationId, request.jobs.length)
  }
  await failpoint('batch.accepted')
  await enqueueBatch({ organisationId, batchId: response.batchId })
  return response
}

const responseFor = (batchId: string, { jobs, resolvedCount }: BatchRequest): AcceptedBatch => ({
  batchId,
  jobIds: jobs.map((_, index) => jobIdOf(batchId, index)),
  submittedCount: jobs.length,
  ...(resolvedCount !== undefined && { resolvedCount }),
  createdAt: iso(timeMsOf(batchId)),
})

/** The batch stays due for the sweep until it is finished. */
function batchWrites(
  caller: Caller,
  request: BatchRequest,
  { batchId: id, submittedCount }: AcceptedBatch,
): WriteItem[] {
  const { organisationId } = caller
  const { jobs, resolvedCount: _, ...settings } = request
  const { starts, writes } = storeChunks(organisationId, id, jobs)
  const title = request.name === undefined ? commonTitle(jobs) : undefined
  const item = {
    id,
    organisationId,
    submittedCount,
    ...settings,
    ...(title !== undefined && { title }),
    ...submitterOf(caller),
    starts,
    expanded: 0,
  }
  const indexKeys = {
    gsi1pk: keys.organisationBatches(organisationId),
    gsi3pk: keys.unfinishedBatchesOf(organisationId),
    ...keys.dueIndexKeys(id, now() + outboxRetryMs),
  }
  return [create(keys.batch(organisationId, id), { ...item, createdAtMs: timeMsOf(id), ...indexKeys }), ...writes]
}

/** Returns the common title of all scripts, or a text with the number of different titles, such as `3 scripts`. */
function commonTitle(jobs: readonly SubmittedJob[]): string | undefined {
  const titles = new Set(jobs.map(({ payload }) => titleOfPayload(payload)))
  const [firstTitle] = titles
  return titles.size > 1 ? `${titles.size} scripts` : firstTitle
}

/**
 * Returns the first failed condition, such as that of the removal guard if a cluster was removed since the guard was
 * read.
 */
const store = (
  caller: Caller,
  { retryOf, jobs }: BatchRequest,
  response: AcceptedBatch,
  writes: readonly WriteItem[],
): Promise<ConditionFailure | undefined> => {
  const { batchId, submittedCount } = response
  const [action, subject] =
    retryOf === undefined ? ['batch.submit', `${submittedCount} jobs`] : ['batch.retry', retryOf]
  const payloads = new Set(jobs.map(({ payload }) => payload))
  const detail = `${subject}, ${describeScripts([...payloads].map((payload) => String(parsePayload(payload)['script'])))}`
  return commit(caller, {
    writes,
    response,
    audit: { action, resource: batchId, detail },
    events: [{ name: 'batch.accepted', subject: batchId, data: { batchId, submittedCount, createdBy: caller.userId } }],
    // The worker that expands the batch enqueues its projections.
    isEnqueued: true,
  })
}

/**
 * Checks the clusters and target nodes, and returns the removal guard. If no job has target nodes, skips the first
 * cluster, which the transaction checks.
 */
async function checkRequest(
  caller: Caller,
  clusterIds: readonly string[],
  jobs: readonly SubmittedJob[],
): Promise<RemovalGuard> {
  const { organisationId } = caller
  const targetedIds = clustersOf(jobs.filter(({ targetNodeIds }) => targetNodeIds !== undefined))
  // The error for an unknown cluster takes precedence over the error for its nodes.
  const lookupIds = targetedIds.length === 0 ? clusterIds.slice(1) : clusterIds
  const itemKeys = [keys.removalGuard(organisationId), ...lookupIds.map((id) => keys.cluster(organisationId, id))]
  const [[guardItem, ...clusters], nodes] = await Promise.all([
    itemKeys.length <= maxKeysWithRights ? readWithRights(caller, itemKeys) : getMany(itemKeys),
    getMany(targetedIds.map((id) => keys.nodes(organisationId, id))),
  ])
  if (clusters.includes(undefined)) throw platformError('cluster_forbidden')
  const nodeIdsByCluster = new Map(
    targetedIds.map((id, index) => [id, new Set(parseNodes(nodes[index]).map(({ id: nodeId }) => nodeId))]),
  )
  const hasTargetNodes = ({ clusterId, targetNodeIds = [] }: SubmittedJob) =>
    targetNodeIds.every((nodeId) => nodeIdsByCluster.get(clusterId)?.has(nodeId))
  if (!jobs.every(hasTargetNodes)) throw platformError('node_not_in_cluster')
  const guard = parseRemovalGuard(guardItem)
  if (!isGuardCurrent(guard)) await checkClusters(organisationId, clusterIds)
  return guard
}

async function checkClusters(organisationId: string, [, ...otherIds]: readonly string[]): Promise<void> {
  const items = await getMany(otherIds.map((id) => keys.cluster(organisationId, id)))
  if (items.includes(undefined)) throw platformError('cluster_forbidden')
}
