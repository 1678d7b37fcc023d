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

/** A batch is stored only while no cluster of the organisation goes; this many may go one after another. */
const attempts = 8

/** What a caller asks for. */
export interface BatchRequest {
  jobs: readonly SubmittedJob[]
  maxConcurrency?: number | undefined
  maxErrors?: number | undefined
  /** The batch whose jobs these were. */
  retryOf?: string
}

/**
 * Accepts a batch, durably, as a whole or not at all. Seven calls in three rounds for 500 jobs of 500 clusters: five that
 * look the clusters up, one transaction, one message. Target nodes are looked up besides, in calls of their own. Throws
 * `cluster_forbidden` where any cluster is not the organisation's, and `node_not_in_cluster`.
 */
export async function createBatch(caller: Caller, request: BatchRequest): Promise<AcceptedBatch> {
  const { organisationId } = caller
  const clusterIds = clustersOf(request.jobs)
  if (!clusterIds.every((id) => isId('clus', id))) throw platformError('cluster_forbidden')
  const answer = answerFor(newBatchId(), request.jobs.length)
  const steps = storeSteps(caller, request, answer)
  let gate = await lookUp(organisationId, clusterIds, request.jobs)
  for (let attempt = 1; ; attempt++) {
    const refusal = await store(caller, request, answer, [
      // The first cluster is looked up by the transaction itself: 500 of them take one call less.
      orThrow(check(keys.cluster(organisationId, clusterIds[0] ?? ''), { pk: { present: true } }), 'cluster_forbidden'),
      openBatchWrite(organisationId, gate, answer.batchId),
      ...steps,
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

/** The steps that store the batch's row and its jobs. The sweep looks at the batch until it is finished. */
function storeSteps(
  caller: Caller,
  request: BatchRequest,
  { batchId: id, submittedCount }: AcceptedBatch,
): WriteItem[] {
  const { organisationId, userId: createdBy } = caller
  const { jobs, maxConcurrency, maxErrors, retryOf } = request
  const { starts, steps } = storeChunks(organisationId, id, jobs)
  const row = { id, organisationId, submittedCount, maxConcurrency, maxErrors, retryOf, createdBy, starts, expanded: 0 }
  const filed = { gsi1pk: keys.organisationBatches(organisationId), ...keys.due(id, now() + outboxRetryMs) }
  return [create(keys.batch(organisationId, id), { ...row, createdAtMs: timeOf(id), ...filed }), ...steps]
}

/** Answers the refusal of the gate: a cluster has gone since it was read. */
const store = (
  caller: Caller,
  { retryOf }: BatchRequest,
  answer: AcceptedBatch,
  steps: readonly WriteItem[],
): Promise<ConditionFailure | undefined> => {
  const { batchId, submittedCount } = answer
  const [action, detail] = retryOf === undefined ? ['batch.submit', `${submittedCount} jobs`] : ['batch.retry', retryOf]
  return commit(caller, {
    steps,
    answer,
    audit: { action, resource: batchId, detail },
    events: [{ name: 'batch.accepted', subject: batchId, data: { batchId, submittedCount, createdBy: caller.userId } }],
    // Whoever expands the batch leads its record to the books.
    isAnnounced: true,
  })
}

/** Looks up all clusters but the first, and the targeted nodes; answers the gate as it stood no later than that. */
async function lookUp(
  organisationId: string,
  clusterIds: readonly string[],
  jobs: readonly SubmittedJob[],
): Promise<RemovalGuard> {
  const targeted = clustersOf(jobs.filter(({ targetNodeIds }) => targetNodeIds !== undefined))
  // A foreign cluster is refused as such, whatever nodes are named with it.
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

/** Looks up all clusters but the first, after the gate was read. */
async function checkClusters(organisationId: string, [, ...others]: readonly string[]): Promise<void> {
  const items = await getMany(others.map((id) => keys.cluster(organisationId, id)))
  if (items.includes(undefined)) throw platformError('cluster_forbidden')
}
