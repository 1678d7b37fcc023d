import type { JobStatus } from '@platform/contract/job'
import type { CountedWrites, Projection } from '../outbox/run-projections.ts'
import { countByStatus } from '../clusters/record.ts'
import { now, nowSeconds } from '../clock.ts'
import { unchangedCondition } from '../db/expression.ts'
import * as keys from '../db/keys.ts'
import { get, type Item, query, tryUpdate, upsert } from '../db/table.ts'
import type { OutboxRecord } from '../outbox/record.ts'

/**
 * Stores the data of the portal's charts in small items for each 15 minutes with activity. Jobs are counted when their
 * outbox records are projected, so purged jobs remain counted. The counts of clusters are a snapshot of the status
 * counts at the last status change of the interval.
 */
export const historyProjection: Projection = { name: 'history', beforeCommit, countedWrites }

export const bucketMs = 15 * 60_000
/** A day longer than the longest range of a request. */
const retentionSeconds = 31 * 86_400
/** A request also counts the jobs of the preceding range. */
const jobRetentionSeconds = 61 * 86_400

export const bucketAt = (ms: number): number => Math.floor(ms / bucketMs) * bucketMs

const statusEvents = new Set(['cluster.registered', 'cluster.enrolled', 'cluster.status_changed', 'cluster.deleted'])

async function beforeCommit(organisationId: string, records: readonly OutboxRecord[]): Promise<void> {
  if (!records.some(({ events }) => events.some(({ name }) => statusEvents.has(name)))) return
  const [statusCounts, last] = await Promise.all([
    get(keys.clusterStatusCounts(organisationId)),
    readLastSnapshot(organisationId),
  ])
  // The clock of another process may be ahead.
  const bucket = Math.max(bucketAt(now()), last?.bucket ?? 0)
  if (last !== undefined && last.bucket < bucket) await expireSnapshot(organisationId, last.bucket)
  const revision = Number(statusCounts?.['revision'] ?? 0)
  const set = { ...countByStatus(statusCounts), revision }
  await tryUpdate(keys.clusterHistory(organisationId, bucket), { set }, { revision: { absentOrAtMost: revision } })
}

async function readLastSnapshot(organisationId: string): Promise<{ bucket: number } | undefined> {
  const { pk, sk } = keys.clusterHistory(organisationId, Number.MAX_SAFE_INTEGER)
  const { items } = await query({ pk, from: 'CLUSTERS#', to: sk, isNewestFirst: true, limit: 1 })
  return items.map((item: Item) => ({ bucket: keys.bucketStartMsOf(item['sk']) }))[0]
}

/** A snapshot is valid until the next one, so its expiry starts when the next one is written. */
const expireSnapshot = (organisationId: string, bucket: number): Promise<unknown> =>
  tryUpdate(
    keys.clusterHistory(organisationId, bucket),
    { set: { ttl: nowSeconds() + retentionSeconds } },
    { pk: { present: true } },
  )

export const historyCounters = ['submitted', 'completed', 'failed', 'cancelled'] as const
type HistoryCounter = (typeof historyCounters)[number]

const endCounters: Partial<Record<JobStatus, HistoryCounter>> = {
  Completed: 'completed',
  Failed: 'failed',
  Cancelled: 'cancelled',
}

/** The counts of the newest bucket are in the item of counts, until records of a later bucket are projected. */
function countedWrites(organisationId: string, records: readonly OutboxRecord[], counts: Item): CountedWrites {
  const buckets = countsByBucket(records)
  if (buckets.size === 0) return {}
  const storedBucket = currentBucket(counts)
  const newestBucket = Math.max(...buckets.keys(), storedBucket?.bucket ?? 0)
  const currentCounts = buckets.get(newestBucket) ?? {}
  buckets.delete(newestBucket)
  const isNew = storedBucket?.bucket !== newestBucket
  if (isNew && storedBucket !== undefined)
    buckets.set(storedBucket.bucket, sumOf(storedBucket.counts, buckets.get(storedBucket.bucket) ?? {}))
  return {
    ...(isNew
      ? { set: { historyBucket: newestBucket, ...currentFields(sumOf({}, currentCounts)) } }
      : { add: currentFields(currentCounts) }),
    condition: { historyBucket: unchangedCondition(storedBucket?.bucket) },
    writes: [...buckets].map(([bucket, add]) =>
      upsert(keys.jobHistory(organisationId, bucket), {
        add,
        set: { ttl: Math.ceil(bucket / 1000) + jobRetentionSeconds },
      }),
    ),
  }
}

type Counts = Partial<Record<HistoryCounter, number>>

function countsByBucket(records: readonly OutboxRecord[]): Map<number, Counts> {
  const buckets = new Map<number, Counts>()
  for (const { atMs, transitions } of records) {
    const bucket = bucketAt(atMs)
    const counts = buckets.get(bucket) ?? {}
    const count = (name: HistoryCounter) => (counts[name] = (counts[name] ?? 0) + 1)
    for (const { from, to } of transitions) {
      if (to === undefined) continue
      if (from === undefined) count('submitted')
      const endCounter = endCounters[to]
      if (endCounter !== undefined) count(endCounter)
    }
    if (Object.keys(counts).length > 0) buckets.set(bucket, counts)
  }
  return buckets
}

const sumOf = (one: Counts, other: Counts): Counts =>
  Object.fromEntries(historyCounters.map((name) => [name, (one[name] ?? 0) + (other[name] ?? 0)]))

const currentFields = (counts: Counts): Record<string, number> =>
  Object.fromEntries(Object.entries(counts).map(([name, count]) => [`history ${name}`, count]))

/** Returns the newest bucket, which has no item of its own; undefined if no jobs were counted. */
export function currentBucket(counts: Item | undefined): { bucket: number; counts: Counts } | undefined {
  const bucket = counts?.['historyBucket']
  if (bucket === undefined) return undefined
  const currentCounts = historyCounters.map((name) => [name, Number(counts?.[`history ${name}`] ?? 0)])
  return { bucket: Number(bucket), counts: Object.fromEntries(currentCounts) }
}
