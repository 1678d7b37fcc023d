import { statusOf } from '@platform/contract/errors'
import * as z from 'zod'
import { enqueueProjections } from '../aws/queues.ts'
import { elapsedMs, isAhead, now } from '../clock.ts'
import * as keys from '../db/keys.ts'
import { get, type Item, backOff, query, remove, replace, type WriteItem, tryUpdate } from '../db/table.ts'
import { transact } from '../db/transact.ts'
import { storeContention, PlatformError } from '../error.ts'
import { newNonce } from '../id.ts'
import { failpoint } from '../lib/failpoint.ts'
import { recordMetric } from '../lib/metrics.ts'
import { log } from '../log.ts'
import { type OutboxRecord, parseRecord } from './record.ts'

/**
 * Runs the projections of an organisation's outbox: audit trail, totals, timelines, notifications and webhook
 * deliveries. Steps before and after the transaction may repeat; the transaction itself writes the projected data and
 * removes the records once.
 */

export interface Projection {
  name: string
  /** Runs at least once, so it must be idempotent. */
  beforeCommit?: (organisationId: string, records: readonly OutboxRecord[]) => Promise<void>
  /** The writes are committed exactly once. Their conditions must fail after a concurrent projection. */
  writes?: (organisationId: string, records: readonly OutboxRecord[]) => Promise<readonly WriteItem[]>
  /** This step may be repeated or lost. */
  afterCommit?: (organisationId: string, records: readonly OutboxRecord[]) => Promise<void>
}

/** A transaction has at most 100 writes, and a record needs up to four. */
const maxRecords = 20
const maxEvents = 60
const maxConflicts = 12

/** Oldest first, until `endMs`. Safe to run concurrently. Returns whether the outbox is empty. */
export async function runProjections(
  organisationId: string,
  projections: readonly Projection[],
  endMs = Number.POSITIVE_INFINITY,
): Promise<boolean> {
  let conflicts = 0
  for (;;) {
    const { items } = await query({ pk: keys.outbox(organisationId, '').pk, limit: maxRecords })
    if (items.length === 0) return true
    if (elapsedMs() > endMs) return false
    const records = limitEvents(await parseRecords(items))
    measureLag(records[0])
    const isCommitted = records.length === 0 || (await projectSafely(organisationId, records, projections))
    conflicts = isCommitted ? 0 : conflicts + 1
    if (conflicts === maxConflicts) throw storeContention()
    if (!isCommitted) await backOff(conflicts)
  }
}

function measureLag(oldest: OutboxRecord | undefined): void {
  if (oldest !== undefined) recordMetric('OutboxLag', (now() - oldest.atMs) / 1000)
}

/** Each event creates notifications and deliveries, so their number per transaction is limited. */
function limitEvents(records: readonly OutboxRecord[]): readonly OutboxRecord[] {
  let events = 0
  const end = records.findIndex((record) => (events += record.events.length) > maxEvents)
  return end < 0 ? records : records.slice(0, Math.max(end, 1))
}

const parseRecords = async (items: readonly Item[]): Promise<OutboxRecord[]> =>
  (await Promise.all(items.map(parseOrQuarantine))).filter((record) => record !== undefined)

/** An unreadable record must not block the others. */
async function parseOrQuarantine(item: Item): Promise<OutboxRecord | undefined> {
  try {
    return parseRecord(item)
  } catch (error) {
    log('error', 'Outbox record unreadable; quarantined', { pk: item['pk'], sk: item['sk'], cause: error })
    await quarantine(item)
    return undefined
  }
}

const quarantine = async (item: Item): Promise<void> => {
  await transact([remove({ pk: String(item['pk']), sk: String(item['sk']) }), quarantineWrite(item)])
}

function quarantineWrite(item: Item): WriteItem {
  recordMetric('RecordsQuarantined')
  const { pk, sk, duepk: _, duesk: __, ...attributes } = item
  return replace(keys.quarantinedRecord(String(pk), String(sk)), attributes)
}

/** If the records fail together, projects each one separately. Throws transient errors. */
async function projectSafely(
  organisationId: string,
  records: readonly OutboxRecord[],
  projections: readonly Projection[],
) {
  try {
    return await project(organisationId, records, projections)
  } catch (error) {
    if (isTransient(error)) throw error
    for (const record of records) await projectOne(organisationId, record, projections)
    return true
  }
}

const isTransient = (error: unknown): boolean =>
  error instanceof PlatformError && (error.code === 'conflict' || statusOf(error.code) === 503)

/** Runs the projections that can process the record. If some cannot, a copy goes to the quarantine. */
async function projectOne(
  organisationId: string,
  record: OutboxRecord,
  projections: readonly Projection[],
): Promise<void> {
  const results = await Promise.all(projections.map((projection) => canProcess(projection, record)))
  const capable = projections.filter((_, index) => results[index])
  const item = await get(keys.outbox(organisationId, record.id))
  if (item === undefined) return
  const quarantineWrites = capable.length === projections.length ? [] : [quarantineWrite(item)]
  try {
    await project(organisationId, [record], capable, quarantineWrites)
  } catch (cause) {
    if (isTransient(cause)) throw cause
    // All projections succeed, but the store rejects their writes.
    log('error', 'Outbox record rejected; quarantined', { organisationId, recordId: record.id, cause })
    await quarantine(item)
  }
}

async function canProcess({ name, beforeCommit, writes }: Projection, record: OutboxRecord): Promise<boolean> {
  const { organisationId, id: recordId } = record
  try {
    await beforeCommit?.(organisationId, [record])
    await writes?.(organisationId, [record])
    return true
  } catch (cause) {
    if (isTransient(cause)) throw cause
    log('error', 'Projection failed for a record', { projection: name, organisationId, recordId, cause })
    return false
  }
}

/** Returns false if a concurrent projection was faster. */
async function project(
  organisationId: string,
  records: readonly OutboxRecord[],
  projections: readonly Projection[],
  additionalWrites: readonly WriteItem[] = [],
): Promise<boolean> {
  await Promise.all(projections.map(async ({ beforeCommit }) => beforeCommit?.(organisationId, records)))
  await failpoint('projection.prepared')
  const writes = await Promise.all(
    projections.map(async (projection) => projection.writes?.(organisationId, records) ?? []),
  )
  const removals = records.map(({ id }) => remove(keys.outbox(organisationId, id), { pk: { present: true } }))
  if (await transact([...removals, ...writes.flat(), ...additionalWrites])) return false
  await failpoint('projection.committed')
  await Promise.all(projections.map(async ({ afterCommit }) => afterCommit?.(organisationId, records)))
  return true
}

/**
 * The lease avoids duplicate work; concurrent projections would be safe. Other workers only set a flag, and the holder
 * runs again before it releases the lease.
 */

/** Leaves time for the last run within a function's limit of 30 seconds. */
const maxWorkMs = 15_000
const renewalIntervalMs = 5000
const leaseMs = 10_000

const ProjectionLease = z.object({ holder: z.string().optional(), untilMs: z.number().optional() })

/**
 * Runs `work` under the lease and again while the flag is set, or not at all if another worker holds the lease. `work`
 * receives its end time and returns whether it is done; otherwise a message continues it.
 */
export async function withLease(organisationId: string, work: (endMs: number) => Promise<boolean>): Promise<void> {
  const [holder, endMs] = [newNonce(), elapsedMs() + maxWorkMs]
  if (!(await acquireLease(organisationId, holder))) return
  let isReleased = false
  try {
    while (!isReleased && elapsedMs() <= endMs) {
      const isDone = await work(Math.min(endMs, elapsedMs() + renewalIntervalMs))
      isReleased = isDone ? await releaseIfIdle(organisationId, holder) : !(await renewLease(organisationId, holder))
    }
  } finally {
    if (!isReleased) await release(organisationId, holder)
  }
  if (!isReleased) await enqueueProjections(organisationId)
}

const release = (organisationId: string, holder: string): Promise<unknown> =>
  tryUpdate(keys.projectionLease(organisationId), { remove: ['holder', 'untilMs'] }, { holder: { is: holder } })

/** If another worker holds the lease, sets the flag and returns false. */
async function acquireLease(organisationId: string, holder: string): Promise<boolean> {
  const key = keys.projectionLease(organisationId)
  for (;;) {
    const change = { set: { holder, untilMs: now() + leaseMs }, remove: ['isRequested'] }
    if (await tryUpdate(key, change, { untilMs: { absentOrAtMost: now() } })) return true
    const { holder: current, untilMs = 0 } = ProjectionLease.parse((await get(key)) ?? {})
    if (current === holder) return true
    if (current === undefined) continue
    if (!isAhead(untilMs, leaseMs) && (await tryUpdate(key, change, { untilMs: { is: untilMs } }))) return true
    if (await tryUpdate(key, { set: { isRequested: true } }, { holder: { is: current } })) return false
  }
}

/** Returns false if this worker still holds the lease. */
async function releaseIfIdle(organisationId: string, holder: string): Promise<boolean> {
  const condition = { holder: { is: holder }, isRequested: { absent: true } } as const
  const change = { remove: ['holder', 'untilMs'] }
  if (await tryUpdate(keys.projectionLease(organisationId), change, condition)) return true
  return !(await renewLease(organisationId, holder))
}

async function renewLease(organisationId: string, holder: string): Promise<boolean> {
  const change = { set: { untilMs: now() + leaseMs }, remove: ['isRequested'] }
  return (await tryUpdate(keys.projectionLease(organisationId), change, { holder: { is: holder } })) !== undefined
}
