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
 * The minutely sweep looks at what is due and at nothing else: its cost grows with what is overdue, not with the fleet.
 * Each look is a conditional write, so that sweeps may overlap, repeat or stop halfway.
 */

const atOnce = 50

/** Removed clusters are cleared for so long at a sweep, none of them begun later: deadlines do not wait for the next one. */
const clearForMs = 15_000

/** What the looks of one sweep share: organisations whose records are announced, and removed clusters, for the end. */
interface Seen {
  announced: Set<string>
  removed: Item[]
}

/** Looks at everything that is due, and then clears removed clusters. One call per index partition when nothing is. */
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

/** The first of a part is the one that has waited longest. */
function measureLateness(oldest: Item | undefined): void {
  if (oldest !== undefined) recordMetric('SweepLateness', (now() - keys.dueTimeOf(String(oldest['duesk']))) / 1000)
}

/**
 * Records that no message has led to the books: one message for each organisation leads all of its to them. A webhook's
 * worker files it anew.
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

const isRemovedCluster = ({ pk, sk }: Item): boolean => sk === 'CLUSTER' && String(pk).startsWith('REMOVED#')

/** One after another, the one that has waited longest first: many of them take more sweeps, and no time from other things. */
async function clearClusters(removed: readonly Item[]): Promise<void> {
  const untilMs = now() + clearForMs
  for (const item of removed.toSorted((a, b) => (String(a['duesk']) < String(b['duesk']) ? -1 : 1))) {
    if (now() < untilMs) await lookSafely(item)
  }
}

/** One thing that cannot be judged must not keep the others from it. */
async function lookSafely(item: Item): Promise<void> {
  try {
    await look(item)
  } catch (error) {
    recordMetric('SweepFailures')
    log('error', 'The sweep failed at an item', { pk: item['pk'], sk: item['sk'], error: String(error) })
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

/** Persists what silence has made of a cluster's status, and files it where the next look is due. */
async function lookAtCluster(row: ClusterRecord): Promise<void> {
  const status = currentStatus(row)
  const dueAtMs = nextCheckAfterSweep(row, now(), config.PLAT_HEARTBEAT_INTERVAL_SECONDS)
  const due = dueAtMs === undefined ? {} : keys.due(row.id, dueAtMs)
  const change = {
    set: { ...due, ...(status === row.status ? {} : statusIndexKeys(row, status)) },
    remove: dueAtMs === undefined ? ['duepk', 'duesk'] : [],
  }
  // A beat that came meanwhile makes the condition fail, and is right.
  const asRead = { lastSeenAtMs: { is: row.lastSeenAtMs }, status: { is: row.status } }
  await commit(system(row.organisationId), {
    steps: [
      patch(keys.cluster(row.organisationId, row.id), change, asRead),
      ...(status === row.status ? [] : [statusCountWrite(row, row.status, status)]),
    ],
    ...(status !== row.status && { events: [statusEvent(row, status)] }),
  })
}

/** A batch is due until it is finished: its message may have been lost, or what followed from the end of a job. */
async function lookAtBatch({ organisationId, id }: BatchRecord): Promise<void> {
  await enqueueBatch({ organisationId, batchId: id })
  const change = { set: keys.due(id, now() + 2 * outboxRetryMs) }
  await transact([patch(keys.batch(organisationId, id), change, { finishedAtMs: { absent: true } })])
}
