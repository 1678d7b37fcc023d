import { type JobStatus } from '@platform/contract/job'
import { type Projection } from '../outbox/run-projections.ts'
import { countByStatus } from '../clusters/record.ts'
import { now, nowSeconds } from '../clock.ts'
import * as keys from '../db/keys.ts'
import { get, type Item, query, type WriteItem, tryUpdate, upsert } from '../db/table.ts'
import { type OutboxRecord } from '../outbox/record.ts'

/**
 * Data of the portal's charts in buckets of 15 minutes: one small item per bucket with activity. Jobs are counted once,
 * when their records are projected; purged jobs stay counted. Clusters are the status counts of the bucket's last
 * projection.
 */
export const historyProjection: Projection = { name: 'history', beforeCommit, writes: entries }

export const bucketMs = 15 * 60_000
/** The longest range of a request, and a day. */
const keepSeconds = 31 * 86_400

/** The start of a time's bucket. */
export const bucketAt = (ms: number): number => Math.floor(ms / bucketMs) * bucketMs

const counting = new Set(['cluster.registered', 'cluster.enrolled', 'cluster.status_changed', 'cluster.deleted'])

/** No call if no cluster status changed; otherwise three, one more for the first reading of a bucket. */
async function beforeCommit(organisationId: string, records: readonly OutboxRecord[]): Promise<void> {
  if (!records.some(({ events }) => events.some(({ name }) => counting.has(name)))) return
  const [tally, last] = await Promise.all([get(keys.clusterStatusCounts(organisationId)), lastLook(organisationId)])
  // Another process's clock may be ahead.
  const slot = Math.max(bucketAt(now()), last?.slot ?? 0)
  if (last !== undefined && last.slot < slot) await letExpire(organisationId, last.slot)
  const revision = Number(tally?.['revision'] ?? 0)
  const set = { ...countByStatus(tally), revision }
  await tryUpdate(keys.clusterHistory(organisationId, slot), { set }, { revision: { absentOrAtMost: revision } })
}

async function lastLook(organisationId: string): Promise<{ slot: number } | undefined> {
  const { pk, sk } = keys.clusterHistory(organisationId, Number.MAX_SAFE_INTEGER)
  const { items } = await query({ pk, from: 'CLUSTERS#', to: sk, newestFirst: true, limit: 1 })
  return items.map((item: Item) => ({ slot: keys.bucketStartOf(item['sk']) }))[0]
}

/** A reading is valid until the next one and expires only after it. */
const letExpire = (organisationId: string, slot: number): Promise<unknown> =>
  tryUpdate(
    keys.clusterHistory(organisationId, slot),
    { set: { ttl: nowSeconds() + keepSeconds } },
    { pk: { present: true } },
  )

const ended: Partial<Record<JobStatus, string>> = {
  Completed: 'completed',
  Failed: 'failed',
  Cancelled: 'cancelled',
}

/** One write per bucket of the records, nearly always one. */
async function entries(organisationId: string, records: readonly OutboxRecord[]): Promise<readonly WriteItem[]> {
  const slots = new Map<number, Record<string, number>>()
  for (const { atMs, transitions } of records) {
    const slot = bucketAt(atMs)
    const counts = slots.get(slot) ?? {}
    const count = (name: string) => (counts[name] = (counts[name] ?? 0) + 1)
    for (const { from, to } of transitions) {
      if (to === undefined) continue
      if (from === undefined) count('submitted')
      const how = ended[to]
      if (how !== undefined) count(how)
    }
    if (Object.keys(counts).length > 0) slots.set(slot, counts)
  }
  return [...slots].map(([slot, add]) =>
    upsert(keys.jobHistory(organisationId, slot), { add, set: { ttl: Math.ceil(slot / 1000) + keepSeconds } }),
  )
}
