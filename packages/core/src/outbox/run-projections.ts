import { statusOf } from '@platform/contract/errors'
import * as z from 'zod'
import { enqueueProjections } from '../aws/queues.ts'
import { now } from '../clock.ts'
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
 * Runs an organisation's projections: audit trail, totals, timelines, notifications and webhook deliveries, from outbox
 * records. All work before the transaction is repeatable; the transaction runs once, makes the writes and removes the
 * records.
 */

/** A projection of outbox records. */
export interface Projection {
  name: string
  /** Runs at least once; must be repeatable. */
  beforeCommit?: (organisationId: string, records: readonly OutboxRecord[]) => Promise<void>
  /** Writes that happen exactly once, in the transaction. They fail after a concurrent projection. */
  writes?: (organisationId: string, records: readonly OutboxRecord[]) => Promise<readonly WriteItem[]>
  /** Follow-up work that may repeat or be lost; something else recovers it. */
  afterCommit?: (organisationId: string, records: readonly OutboxRecord[]) => Promise<void>
}

/** Records per transaction, which has 100 writes; a record needs up to four. */
const recordsAtOnce = 20
const eventsAtOnce = 60
const attempts = 12

/**
 * Projects all records of an organisation, oldest first, until a time. Concurrent calls are safe. Returns whether none
 * is left.
 */
export async function runProjections(
  organisationId: string,
  projections: readonly Projection[],
  endMs = Number.POSITIVE_INFINITY,
): Promise<boolean> {
  let lost = 0
  for (;;) {
    const { items } = await query({ pk: keys.outbox(organisationId, '').pk, limit: recordsAtOnce })
    if (items.length === 0) return true
    if (now() > endMs) return false
    const records = closedTogether(await readableOf(items))
    measureLag(records[0])
    const isClosed = records.length === 0 || (await projectSafely(organisationId, records, projections))
    lost = isClosed ? 0 : lost + 1
    if (lost === attempts) throw storeContention()
    if (!isClosed) await backOff(lost)
  }
}

function measureLag(oldest: OutboxRecord | undefined): void {
  if (oldest !== undefined) recordMetric('OutboxLag', (now() - oldest.atMs) / 1000)
}

/** Limits the events per transaction, because notifications and deliveries grow with them. */
function closedTogether(records: readonly OutboxRecord[]): readonly OutboxRecord[] {
  let events = 0
  const tooMany = records.findIndex((record) => (events += record.events.length) > eventsAtOnce)
  return tooMany < 0 ? records : records.slice(0, Math.max(tooMany, 1))
}

const readableOf = async (items: readonly Item[]): Promise<OutboxRecord[]> =>
  (await Promise.all(items.map(readable))).filter((record) => record !== undefined)

/** An unreadable record must not block the others: it is quarantined and logged. */
async function readable(item: Item): Promise<OutboxRecord | undefined> {
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

/** Copies a record to the quarantine. */
function quarantineWrite(item: Item): WriteItem {
  recordMetric('RecordsQuarantined')
  const { pk, sk, duepk: _, duesk: __, ...kept } = item
  return replace(keys.quarantinedRecord(String(pk), String(sk)), kept)
}

/** A failing record must not block the others. Transient errors are thrown. */
async function projectSafely(
  organisationId: string,
  records: readonly OutboxRecord[],
  projections: readonly Projection[],
) {
  try {
    return await project(organisationId, records, projections)
  } catch (error) {
    if (mayPass(error)) throw error
    for (const record of records) await projectWhatSucceeds(organisationId, record, projections)
    return true
  }
}

const mayPass = (error: unknown): boolean => error instanceof PlatformError && statusOf(error.code) === 503

/** Projects a record by all projections that can process it; quarantines a copy for the others. */
async function projectWhatSucceeds(
  organisationId: string,
  record: OutboxRecord,
  projections: readonly Projection[],
): Promise<void> {
  const tried = await Promise.all(projections.map(async (each) => ({ each, canTake: await canTake(each, record) })))
  const able = tried.filter(({ canTake }) => canTake).map(({ each }) => each)
  const item = await get(keys.outbox(organisationId, record.id))
  if (item === undefined) return
  const copy = able.length === projections.length ? [] : [quarantineWrite(item)]
  try {
    await project(organisationId, [record], able, copy)
  } catch (cause) {
    if (mayPass(cause)) throw cause
    // Each projection succeeds, but the store rejects their writes.
    log('error', 'Outbox record rejected; quarantined', { organisationId, recordId: record.id, cause })
    await quarantine(item)
  }
}

async function canTake({ name, beforeCommit, writes }: Projection, record: OutboxRecord): Promise<boolean> {
  const { organisationId, id: recordId } = record
  try {
    await beforeCommit?.(organisationId, [record])
    await writes?.(organisationId, [record])
    return true
  } catch (cause) {
    if (mayPass(cause)) throw cause
    log('error', 'Projection failed for a record', { projection: name, organisationId, recordId, cause })
    return false
  }
}

/** Returns whether the records were projected; false after a concurrent projection. */
async function project(
  organisationId: string,
  records: readonly OutboxRecord[],
  projections: readonly Projection[],
  more: readonly WriteItem[] = [],
): Promise<boolean> {
  await Promise.all(projections.map(async ({ beforeCommit }) => beforeCommit?.(organisationId, records)))
  await failpoint('projection.prepared')
  const writes = await Promise.all(
    projections.map(async ({ writes: entries }) => entries?.(organisationId, records) ?? []),
  )
  const closing = records.map(({ id }) => remove(keys.outbox(organisationId, id), { pk: { present: true } }))
  if (await transact([...closing, ...writes.flat(), ...more])) return false
  await failpoint('projection.committed')
  await Promise.all(projections.map(async ({ afterCommit }) => afterCommit?.(organisationId, records)))
  return true
}

/**
 * One worker at a time runs an organisation's projections. Another one only sets a flag, and the worker runs again
 * before it releases the lease. Only an optimisation: concurrent projections are safe.
 */

/** Functions have 30 seconds. */
const workMs = 15_000
/** Renewal interval. */
const stretchMs = 5000
/** A crashed worker blocks others no longer than this. */
const turnMs = 10_000

const Turn = z.object({ holder: z.string().optional() })

/**
 * Runs the work under the lease, again while the flag is set; not at all if another worker has the lease. Work receives
 * its end time and returns whether it is done; otherwise a message continues it. Two calls more than the work.
 */
export async function withLease(organisationId: string, work: (endMs: number) => Promise<boolean>): Promise<void> {
  const [holder, endMs] = [newNonce(), now() + workMs]
  if (!(await begin(organisationId, holder))) return
  let isOver = false
  try {
    while (!isOver && now() <= endMs) {
      const isDone = await work(Math.min(endMs, now() + stretchMs))
      isOver = isDone ? await end(organisationId, holder) : !(await goOn(organisationId, holder))
    }
  } finally {
    if (!isOver) await leave(organisationId, holder)
  }
  if (!isOver) await enqueueProjections(organisationId)
}

/** Releases the lease regardless of the flag. */
const leave = (organisationId: string, holder: string): Promise<unknown> =>
  tryUpdate(keys.projectionLease(organisationId), { remove: ['holder', 'untilMs'] }, { holder: { is: holder } })

async function begin(organisationId: string, holder: string): Promise<boolean> {
  const key = keys.projectionLease(organisationId)
  for (;;) {
    const taken = { set: { holder, untilMs: now() + turnMs }, remove: ['isRequested'] }
    if (await tryUpdate(key, taken, { untilMs: { absentOrAtMost: now() } })) return true
    const { holder: current } = Turn.parse((await get(key)) ?? {})
    // Our own lease, after a lost response.
    if (current === holder) return true
    if (current === undefined) continue
    if (await tryUpdate(key, { set: { isRequested: true } }, { holder: { is: current } })) return false
  }
}

/** Returns false if the flag was set: then the lease is kept. */
async function end(organisationId: string, holder: string): Promise<boolean> {
  const key = keys.projectionLease(organisationId)
  const isOurs = { holder: { is: holder } } as const
  const rested = await tryUpdate(key, { remove: ['holder', 'untilMs'] }, { ...isOurs, isRequested: { absent: true } })
  if (rested !== undefined) return true
  return !(await goOn(organisationId, holder))
}

/** Renews the lease; false if it expired and another worker has it. */
async function goOn(organisationId: string, holder: string): Promise<boolean> {
  const longer = { set: { untilMs: now() + turnMs }, remove: ['isRequested'] }
  return (await tryUpdate(keys.projectionLease(organisationId), longer, { holder: { is: holder } })) !== undefined
}
