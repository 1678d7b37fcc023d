import { type BatchRecord, parseBatch } from '../jobs/batches/record.ts'
import { system } from '../caller.ts'
import { commit } from '../outbox/commit.ts'
import {
  type ClusterRecord,
  statusIndexKeys,
  parseCluster,
  statusEvent,
  currentStatus,
  statusCountWrite,
} from '../clusters/record.ts'
import { now } from '../clock.ts'
import { purgeCluster } from '../jobs/purge.ts'
import { config } from '../config.ts'
import * as keys from '../db/keys.ts'
import { getConsistent, type Item, patch, query } from '../db/table.ts'
import { transact } from '../db/transact.ts'
import { enforceDeadline } from '../jobs/deadlines.ts'
import { parseJob } from '../jobs/record.ts'
import { log } from '../log.ts'
import { requeueIfStalled } from '../operations/operation.ts'
import { recordMetric } from '../lib/metrics.ts'
import { isOperation, parseOperation } from '../operations/record.ts'
import { purgePreferences } from '../accounts/purge-preferences.ts'
import { outboxRetryMs, enqueueBatch, enqueueProjections, enqueueWebhook } from '../aws/queues.ts'
import { collectOrphans, isOrphanedSecret } from '../identity-providers/orphaned-secrets.ts'
import { nextCheckAfterSweep } from '../clusters/status.ts'

/**
 * Runs every minute and reads due items only, so its cost grows with overdue work, not with the number of clusters. All
 * writes are conditional, so sweeps may overlap, repeat or stop halfway.
 */

const pageSize = 50

/** Limits the purge of removed clusters, so that it does not delay the deadlines of the next sweep. */
const purgeTimeMs = 15_000

interface SweepState {
  enqueuedOrganisations: Set<string>
  removedClusters: Item[]
}

export async function sweep(): Promise<void> {
  const state: SweepState = { enqueuedOrganisations: new Set(), removedClusters: [] }
  const shards = Array.from({ length: keys.dueShards }, (_, shard) => sweepShard(keys.duePartition(shard), state))
  const counts = await Promise.all(shards)
  await purgeClusters(state.removedClusters)
  const itemCount = counts.reduce((sum, count) => sum + count, 0)
  if (itemCount > 0) log('info', 'Sweep completed', { itemCount })
}

async function sweepShard(pk: string, state: SweepState): Promise<number> {
  const to = `${keys.dueSort(now())}~`
  let itemCount = 0
  let after: Item | undefined
  do {
    const page = await query({ index: 'due', pk, to, limit: pageSize, ...(after && { after }) })
    recordDelay(page.items[0])
    const due = page.items.map((item) => ({ pk: String(item['pk']), sk: String(item['sk']) }))
    await processAll(due, state)
    itemCount += due.length
    after = page.next
  } while (after !== undefined)
  return itemCount
}

/** The index sorts by due time, so the first item is the oldest. */
function recordDelay(oldest: Item | undefined): void {
  if (oldest !== undefined) recordMetric('SweepDelay', (now() - keys.dueTimeOf(String(oldest['duesk']))) / 1000)
}

/**
 * Enqueues each organisation only once per sweep, however many outbox records are due. Webhook workers set the next due
 * time themselves.
 */
async function processAll(
  due: readonly keys.Key[],
  { enqueuedOrganisations, removedClusters }: SweepState,
): Promise<void> {
  const [records, webhooks] = [due.filter(keys.isOutbox), due.filter(keys.isWebhook)]
  const otherKeys = due.filter((key) => !keys.isOutbox(key) && !keys.isWebhook(key))
  const organisationIds = new Set(records.map(({ pk }) => keys.organisationOf(pk)))
  const unprojected = [...organisationIds].filter((organisationId) => !enqueuedOrganisations.has(organisationId))
  for (const organisationId of unprojected) enqueuedOrganisations.add(organisationId)
  const items = (await getConsistent(otherKeys)).filter((item) => item !== undefined)
  removedClusters.push(...items.filter(isRemovedCluster))
  await Promise.all([
    ...unprojected.map(enqueueProjections),
    ...webhooks.map(({ pk, sk }) => enqueueWebhook({ organisationId: keys.organisationOf(pk), webhookId: sk })),
    ...items.filter((item) => !isRemovedCluster(item)).map(processSafely),
  ])
}

const isRemovedCluster = ({ pk, sk }: Item): boolean => sk === 'CLUSTER' && String(pk).startsWith('PURGE#')

/** Sequential and oldest first; the next sweep continues a backlog. */
async function purgeClusters(removedClusters: readonly Item[]): Promise<void> {
  const untilMs = now() + purgeTimeMs
  for (const item of removedClusters.toSorted((a, b) => (String(a['duesk']) < String(b['duesk']) ? -1 : 1))) {
    if (now() < untilMs) await processSafely(item)
  }
}

/** An error of one item must not block the others. */
async function processSafely(item: Item): Promise<void> {
  try {
    await processItem(item)
  } catch (error) {
    recordMetric('SweepFailures')
    log('error', 'Sweep failed for an item', { pk: item['pk'], sk: item['sk'], error: String(error) })
  }
}

async function processItem(item: Item): Promise<void> {
  if (isOperation(item)) return requeueIfStalled(parseOperation(item))
  if (item['sk'] === 'JOB') return enforceDeadline(parseJob(item))
  if (item['sk'] === 'BATCH') return checkBatch(parseBatch(item))
  if (item['sk'] === 'USER') return purgePreferences(item)
  if (isRemovedCluster(item)) return purgeCluster(item)
  if (isOrphanedSecret(item)) return collectOrphans(item)
  return checkCluster(parseCluster(item))
}

async function checkCluster(record: ClusterRecord): Promise<void> {
  const status = currentStatus(record)
  const dueAtMs = nextCheckAfterSweep(record, now(), config.PLAT_HEARTBEAT_INTERVAL_SECONDS)
  const due = dueAtMs === undefined ? {} : keys.due(record.id, dueAtMs)
  const change = {
    set: { ...due, ...(status === record.status ? {} : statusIndexKeys(record, status)) },
    remove: dueAtMs === undefined ? ['duepk', 'duesk'] : [],
  }
  // If a heartbeat arrives concurrently, the condition fails and the heartbeat's status takes precedence.
  const condition = { lastSeenAtMs: { is: record.lastSeenAtMs }, status: { is: record.status } }
  await commit(system(record.organisationId), {
    writes: [
      patch(keys.cluster(record.organisationId, record.id), change, condition),
      ...(status === record.status ? [] : [statusCountWrite(record, record.status, status)]),
    ],
    ...(status !== record.status && { events: [statusEvent(record, status)] }),
  })
}

/** Batches stay due until they are finished, because their messages may be lost. */
async function checkBatch({ organisationId, id }: BatchRecord): Promise<void> {
  await enqueueBatch({ organisationId, batchId: id })
  const change = { set: keys.due(id, now() + 2 * outboxRetryMs) }
  await transact([patch(keys.batch(organisationId, id), change, { finishedAtMs: { absent: true } })])
}
