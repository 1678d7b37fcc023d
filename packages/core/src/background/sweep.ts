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
import { purgeCluster } from '../jobs/purge-cluster.ts'
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
 * The minutely sweep processes due items only: its cost grows with overdue work, not with the fleet. All writes are
 * conditional, so sweeps may overlap, repeat or stop halfway.
 */

const atOnce = 50

/** Time for purging removed clusters in one sweep, so that deadlines are not delayed. */
const clearForMs = 15_000

/** State of one sweep: organisations already enqueued, and removed clusters to purge last. */
interface Seen {
  announced: Set<string>
  removed: Item[]
}

/** Processes all due items, and then purges removed clusters. One call per index partition if nothing is due. */
export async function sweep(): Promise<void> {
  const seen: Seen = { announced: new Set(), removed: [] }
  const shards = Array.from({ length: keys.dueShards }, (_, shard) => sweepShard(keys.duePartition(shard), seen))
  const counts = await Promise.all(shards)
  await clearClusters(seen.removed)
  const looked = counts.reduce((sum, count) => sum + count, 0)
  if (looked > 0) log('info', 'Sweep', { looked })
}

async function sweepShard(pk: string, seen: Seen): Promise<number> {
  const to = `${keys.dueSort(now())}~`
  let looked = 0
  let after: Item | undefined
  do {
    const part = await query({ index: 'due', pk, to, limit: atOnce, ...(after && { after }) })
    measureLateness(part.items[0])
    const due = part.items.map((item) => ({ pk: String(item['pk']), sk: String(item['sk']) }))
    await lookAtAll(due, seen)
    looked += due.length
    after = part.next
  } while (after !== undefined)
  return looked
}

/** The first item of a partition is the oldest. */
function measureLateness(oldest: Item | undefined): void {
  if (oldest !== undefined) recordMetric('SweepDelay', (now() - keys.dueTimeOf(String(oldest['duesk']))) / 1000)
}

/**
 * Outbox records that no message has led to a projection: one message per organisation. A webhook's worker reschedules
 * it.
 */
async function lookAtAll(due: readonly keys.Key[], { announced, removed }: Seen): Promise<void> {
  const [records, webhooks] = [due.filter(keys.isOutbox), due.filter(keys.isWebhook)]
  const others = due.filter((key) => !keys.isOutbox(key) && !keys.isWebhook(key))
  const named = new Set(records.map(({ pk }) => keys.organisationOf(pk)))
  const behind = [...named].filter((organisationId) => !announced.has(organisationId))
  for (const organisationId of behind) announced.add(organisationId)
  const items = (await getConsistent(others)).filter((item) => item !== undefined)
  removed.push(...items.filter(isRemovedCluster))
  await Promise.all([
    ...behind.map(enqueueProjections),
    ...webhooks.map(({ pk, sk }) => enqueueWebhook({ organisationId: keys.organisationOf(pk), webhookId: sk })),
    ...items.filter((item) => !isRemovedCluster(item)).map(lookSafely),
  ])
}

const isRemovedCluster = ({ pk, sk }: Item): boolean => sk === 'CLUSTER' && String(pk).startsWith('PURGE#')

/** Sequential, oldest first: a backlog takes more sweeps instead of delaying other work. */
async function clearClusters(removed: readonly Item[]): Promise<void> {
  const untilMs = now() + clearForMs
  for (const item of removed.toSorted((a, b) => (String(a['duesk']) < String(b['duesk']) ? -1 : 1))) {
    if (now() < untilMs) await lookSafely(item)
  }
}

/** An error of one item must not block the others. */
async function lookSafely(item: Item): Promise<void> {
  try {
    await look(item)
  } catch (error) {
    recordMetric('SweepFailures')
    log('error', 'Sweep failed for an item', { pk: item['pk'], sk: item['sk'], error: String(error) })
  }
}

async function look(item: Item): Promise<void> {
  if (isOperation(item)) return requeueIfStalled(parseOperation(item))
  if (item['sk'] === 'JOB') return enforceDeadline(parseJob(item))
  if (item['sk'] === 'BATCH') return lookAtBatch(parseBatch(item))
  if (item['sk'] === 'USER') return purgePreferences(item)
  if (isRemovedCluster(item)) return purgeCluster(item)
  if (isOrphanedSecret(item)) return collectOrphans(item)
  return lookAtCluster(parseCluster(item))
}

/** Persists the status of a silent cluster and schedules its next check. */
async function lookAtCluster(row: ClusterRecord): Promise<void> {
  const status = currentStatus(row)
  const dueAtMs = nextCheckAfterSweep(row, now(), config.PLAT_HEARTBEAT_INTERVAL_SECONDS)
  const due = dueAtMs === undefined ? {} : keys.due(row.id, dueAtMs)
  const change = {
    set: { ...due, ...(status === row.status ? {} : statusIndexKeys(row, status)) },
    remove: dueAtMs === undefined ? ['duepk', 'duesk'] : [],
  }
  // A concurrent heartbeat fails the condition and takes precedence.
  const asRead = { lastSeenAtMs: { is: row.lastSeenAtMs }, status: { is: row.status } }
  await commit(system(row.organisationId), {
    writes: [
      patch(keys.cluster(row.organisationId, row.id), change, asRead),
      ...(status === row.status ? [] : [statusCountWrite(row, row.status, status)]),
    ],
    ...(status !== row.status && { events: [statusEvent(row, status)] }),
  })
}

/** Batches stay due until they are finished, because a message or a follow-up may have been lost. */
async function lookAtBatch({ organisationId, id }: BatchRecord): Promise<void> {
  await enqueueBatch({ organisationId, batchId: id })
  const change = { set: keys.due(id, now() + 2 * outboxRetryMs) }
  await transact([patch(keys.batch(organisationId, id), change, { finishedAtMs: { absent: true } })])
}
