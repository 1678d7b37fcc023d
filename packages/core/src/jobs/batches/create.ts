import { type AcceptedBatch } from '@platform/contract/batch'
import { clustersOf, storeChunks } from './chunks.ts'
import { type RemovalGuard, isGuardCurrent, openBatchWrite, parseRemovalGuard } from '../../clusters/removal-guard.ts'
import { jobIdOf, newBatchId } from './id.ts'
import { type SubmittedJob } from './submission.ts'
import { type Caller } from '../../caller.ts'
import { commit } from '../../outbox/commit.ts'
import { iso, now } from '../../clock.ts'
import * as keys from '../../db/keys.ts'
import { check, create, getMany, orThrow, backOff, type WriteItem } from '../../db/table.ts'
import { type ConditionFailure } from '../../db/transact.ts'
import { failpoint } from '../../lib/failpoint.ts'
import { storeContention, platformError } from '../../error.ts'
import { isId, timeOf } from '../../id.ts'
import { parseNodes } from '../../clusters/node.ts'
import { outboxRetryMs, enqueueBatch } from '../../aws/queues.ts'

/** Creation fails if a cluster is removed concurrently; attempts against several removals. */
const attempts = 8

export interface BatchRequest {
  jobs: readonly SubmittedJob[]
  maxConcurrency?: number | undefined
  maxErrors?: number | undefined
  /** The batch whose jobs are retried. */
  retryOf?: string
}

/**
 * Accepts a batch as a whole or not at all. Seven calls in three rounds for 500 jobs of 500 clusters: five lookups, one
 * transaction, one message. Target nodes take further calls. Throws `cluster_forbidden` if any cluster is not the
 * organisation's, and `node_not_in_cluster`.
 */
export async function createBatch(caller: Caller, request: BatchRequest): Promise<AcceptedBatch> {
  const { organisationId } = caller
  const clusterIds = clustersOf(request.jobs)
  if (!clusterIds.every((id) => isId('clus', id))) throw platformError('cluster_forbidden')
  const answer = answerFor(newBatchId(), request.jobs.length)
  const writes = storeSteps(caller, request, answer)
  let gate = await lookUp(organisationId, clusterIds, request.jobs)
  for (let attempt = 1; ; attempt++) {
    const refusal = await store(caller, request, answer, [
      // The transaction itself checks the first cluster, which saves a call for 500 clusters.
      orThrow(check(keys.cluster(organisationId, clusterIds[0] ?? ''), { pk: { present: true } }), 'cluster_forbidden'),
      openBatchWrite(organisationId, gate, answer.batchId),
      ...writes,
    ])
    if (refusal === undefined) break
    if (attempt === attempts) throw storeContention()
    await backOff(attempt)
    gate = parseRemovalGuard(refusal.item)
    await checkClusters(organisationId, clusterIds)
  }
  await failpoint('batch.accepted')
  await enqueueBatch({ organisationId, batchId: answer.batchId })
  return answer
}

const answerFor = (batchId: string, submittedCount: number): AcceptedBatch => ({
  batchId,
  jobIds: Array.from({ length: submittedCount }, (_, index) => jobIdOf(batchId, index)),
  submittedCount,
  createdAt: iso(timeOf(batchId)),
})

/** The writes that store the batch record and its jobs. The batch is due for the sweep until it is finished. */
function storeSteps(
  caller: Caller,
  request: BatchRequest,
  { batchId: id, submittedCount }: AcceptedBatch,
): WriteItem[] {
  const { organisationId, userId: createdBy } = caller
  const { jobs, maxConcurrency, maxErrors, retryOf } = request
  const { starts, steps: writes } = storeChunks(organisationId, id, jobs)
  const row = { id, organisationId, submittedCount, maxConcurrency, maxErrors, retryOf, createdBy, starts, expanded: 0 }
  const filed = { gsi1pk: keys.organisationBatches(organisationId), ...keys.due(id, now() + outboxRetryMs) }
  return [create(keys.batch(organisationId, id), { ...row, createdAtMs: timeOf(id), ...filed }), ...writes]
}

/** Returns a failed condition of the removal guard: a cluster was removed since it was read. */
const store = (
  caller: Caller,
  { retryOf }: BatchRequest,
  answer: AcceptedBatch,
  writes: readonly WriteItem[],
): Promise<ConditionFailure | undefined> => {
  const { batchId, submittedCount } = answer
  const [action, detail] = retryOf === undefined ? ['batch.submit', `${submittedCount} jobs`] : ['batch.retry', retryOf]
  return commit(caller, {
    writes,
    answer,
    audit: { action, resource: batchId, detail },
    events: [{ name: 'batch.accepted', subject: batchId, data: { batchId, submittedCount, createdBy: caller.userId } }],
    // The worker that expands the batch enqueues its projections.
    isEnqueued: true,
  })
}

/** Looks up all clusters except the first, and the target nodes; returns the guard as read before. */
async function lookUp(
  organisationId: string,
  clusterIds: readonly string[],
  jobs: readonly SubmittedJob[],
): Promise<RemovalGuard> {
  const targeted = clustersOf(jobs.filter(({ targetNodeIds }) => targetNodeIds !== undefined))
  // A foreign cluster takes precedence over its nodes.
  const asked = targeted.length === 0 ? clusterIds.slice(1) : clusterIds
  const [[gateItem, ...clusters], nodes] = await Promise.all([
    getMany([keys.removalGuard(organisationId), ...asked.map((id) => keys.cluster(organisationId, id))]),
    getMany(targeted.map((id) => keys.nodes(organisationId, id))),
  ])
  if (clusters.includes(undefined)) throw platformError('cluster_forbidden')
  const known = new Map(
    targeted.map((id, place) => [id, new Set(parseNodes(nodes[place]).map(({ id: nodeId }) => nodeId))]),
  )
  const isKnown = ({ clusterId, targetNodeIds = [] }: SubmittedJob) =>
    targetNodeIds.every((nodeId) => known.get(clusterId)?.has(nodeId))
  if (!jobs.every(isKnown)) throw platformError('node_not_in_cluster')
  const gate = parseRemovalGuard(gateItem)
  if (!isGuardCurrent(gate)) await checkClusters(organisationId, clusterIds)
  return gate
}

/** Looks up all clusters except the first, after reading the guard. */
async function checkClusters(organisationId: string, [, ...others]: readonly string[]): Promise<void> {
  const items = await getMany(others.map((id) => keys.cluster(organisationId, id)))
  if (items.includes(undefined)) throw platformError('cluster_forbidden')
}
