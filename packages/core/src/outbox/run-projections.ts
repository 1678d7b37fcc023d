import * as z from 'zod'
import { elapsedMs, isAhead, now } from '../clock.ts'
import { type Condition, unchangedCondition } from '../db/expression.ts'
import * as keys from '../db/keys.ts'
import {
  get,
  getMany,
  batchRemove,
  type Item,
  backOff,
  remove,
  replace,
  type WriteItem,
  tryUpdate,
  upsert,
} from '../db/table.ts'
import { transact } from '../db/transact.ts'
import { isTransient, storeContentionError } from '../error.ts'
import { newNonce } from '../id.ts'
import { failpoint } from '../lib/failpoint.ts'
import { recordMetric } from '../lib/metrics.ts'
import { log } from '../log.ts'
import { readOldestRecords, type OutboxRecord, parseRecord } from './record.ts'

/**
 * Runs the projections of an organisation's outbox: audit trail, totals, timelines, notifications and webhook
 * deliveries. Steps before the transaction may repeat, and steps after it may be lost. The transaction writes the
 * projected data, and the ids of the records and the number of the run to the item of counts. The records are removed
 * after the transaction, because removals in a transaction cost twice as much. After a crash in between, the next run
 * finds the ids and removes the records.
 */

export interface Projection {
  name: string
  /** Runs at least once, so it must be idempotent. */
  beforeCommit?: (organisationId: string, records: readonly OutboxRecord[]) => Promise<void>
  /** The writes are committed exactly once. Their conditions must fail after a concurrent projection. */
  writes?: (organisationId: string, records: readonly OutboxRecord[]) => Promise<readonly WriteItem[]>
  /** Like `writes`, with a change of the item of counts, which the projections share. */
  countedWrites?: (organisationId: string, records: readonly OutboxRecord[], counts: Item) => CountedWrites
  /** This step may be lost. */
  afterCommit?: (organisationId: string, records: readonly OutboxRecord[]) => Promise<void>
}

export interface CountedWrites {
  add?: Readonly<Record<string, number>>
  set?: Readonly<Record<string, unknown>>
  condition?: Condition
  writes?: readonly WriteItem[]
}

/** A transaction has at most 100 writes: one for each record, two for each batch, and a few others. */
const maxRecords = 30
const maxBatches = 30
/** Each event can create notifications and deliveries. */
const maxEvents = 60
const maxConflicts = 12

/**
 * Projects the oldest records first, until `elapsedMs()` exceeds `endMs`. Safe to run concurrently. Returns whether no
 * work is left for this worker: the outbox is empty, or another worker continues.
 */
export async function runProjections(
  organisationId: string,
  projections: readonly Projection[],
  endMs = Number.POSITIVE_INFINITY,
): Promise<boolean> {
  const lease = new Lease(organisationId)
  try {
    let lastRun: number | undefined
    for (let conflictCount = 0; ;) {
      const outbox = await readOutbox(organisationId, lastRun)
      if (outbox.count === 0) {
        // Other workers may have left records to this one, so it reads the outbox again after releasing the lease.
        if (await lease.release()) continue
        return true
      }
      if (elapsedMs() > endMs) return false
      if (outbox.count === maxRecords && !(await lease.hold())) return true
      const records = fittingRecords(await parseRecords(outbox.pending))
      measureLag(records[0])
      const outcome = records.length === 0 ? 'separate' : await projectSafely(outbox, records, projections)
      // The other worker reads the outbox again after its commit.
      if (outcome === 'overtaken') return true
      lastRun = outcome === 'committed' ? runNumberIn(outbox.counts) + 1 : undefined
      conflictCount = outcome === 'conflict' ? conflictCount + 1 : 0
      if (conflictCount === maxConflicts) throw storeContentionError()
      if (conflictCount > 0) await backOff(conflictCount)
    }
  } finally {
    await lease.release()
  }
}

/** The state that a run starts from. `projectedIds` names projected records that may still exist. */
interface Outbox {
  organisationId: string
  counts: Item
  projectedIds: readonly string[]
}

const idsIn = (counts: Item): string[] => z.string().default('').parse(counts['projected']).split(',').filter(Boolean)

const runNumberIn = (counts: Item): number => Number(counts['run'] ?? 0)

/**
 * Reads the item of counts first: if another run projects some of the records in between, the transaction of this run
 * fails. After its own run, a worker reads the item only if further records exist. Removes records that are already
 * projected.
 */
async function readOutbox(
  organisationId: string,
  ownRun?: number,
): Promise<Outbox & { count: number; pending: readonly Item[] }> {
  const earlierCounts = ownRun === undefined ? await readCounts(organisationId) : undefined
  const items = await readOldestRecords(organisationId, maxRecords)
  const counts = earlierCounts ?? (items.length === 0 ? {} : await readCounts(organisationId))
  if (items.length > 0 && ownRun !== undefined && runNumberIn(counts) !== ownRun) return readOutbox(organisationId)
  const names = new Set(idsIn(counts))
  const isNamed = ({ sk }: Item) => names.has(String(sk))
  await removeRecords(
    organisationId,
    items.filter(isNamed).map(({ sk }) => String(sk)),
  )
  const lastId = String(items.at(-1)?.['sk'])
  const projectedIds = items.length < maxRecords ? [] : [...names].filter((id) => id > lastId)
  return { organisationId, counts, projectedIds, count: items.length, pending: items.filter((item) => !isNamed(item)) }
}

const removeRecords = (organisationId: string, ids: readonly string[]): Promise<void> =>
  batchRemove(ids.map((id) => keys.outbox(organisationId, id)))

function measureLag(oldestRecord: OutboxRecord | undefined): void {
  if (oldestRecord !== undefined) recordMetric('OutboxLag', (now() - oldestRecord.atMs) / 1000)
}

/** Returns the first records that fit into one transaction. */
function fittingRecords(records: readonly OutboxRecord[]): readonly OutboxRecord[] {
  let eventCount = 0
  const batchIds = new Set<string>()
  const end = records.findIndex(({ events, transitions }) => {
    eventCount += events.length
    for (const { batchId } of transitions) if (batchId !== undefined) batchIds.add(batchId)
    return eventCount > maxEvents || batchIds.size > maxBatches
  })
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
  outbox: Outbox,
  records: readonly OutboxRecord[],
  projections: readonly Projection[],
): Promise<Outcome> {
  try {
    return await project(outbox, records, projections)
  } catch (error) {
    if (isTransient(error)) throw error
    for (const record of records) await projectOne(outbox.organisationId, record, projections)
    return 'separate'
  }
}

/** Runs the projections that can process the record. If any projection cannot, also writes a copy to the quarantine. */
async function projectOne(
  organisationId: string,
  record: OutboxRecord,
  projections: readonly Projection[],
): Promise<void> {
  const results = await Promise.all(projections.map((projection) => canProcess(projection, record)))
  const capableProjections = projections.filter((_, index) => results[index])
  const counts = await readCounts(organisationId)
  const names = idsIn(counts)
  const items = await getMany([record.id, ...names].map((id) => keys.outbox(organisationId, id)))
  const [item] = items
  if (item === undefined || names.includes(record.id)) return
  const outbox = { organisationId, counts, projectedIds: names.filter((_, index) => items[index + 1] !== undefined) }
  const quarantineWrites = capableProjections.length === projections.length ? [] : [quarantineWrite(item)]
  try {
    await project(outbox, [record], capableProjections, quarantineWrites)
  } catch (cause) {
    if (isTransient(cause)) throw cause
    // The projections succeeded on their own, but the store rejects the transaction.
    log('error', 'Outbox record rejected; quarantined', { organisationId, recordId: record.id, cause })
    await quarantine(item)
  }
}

async function canProcess(
  { name, beforeCommit, writes, countedWrites }: Projection,
  record: OutboxRecord,
): Promise<boolean> {
  const { organisationId, id: recordId } = record
  try {
    await beforeCommit?.(organisationId, [record])
    await writes?.(organisationId, [record])
    countedWrites?.(organisationId, [record], await readCounts(organisationId))
    return true
  } catch (cause) {
    if (isTransient(cause)) throw cause
    log('error', 'Projection failed for a record', { projection: name, organisationId, recordId, cause })
    return false
  }
}

/**
 * `overtaken` if another worker has projected some of the records; `separate` if the records had separate transactions,
 * or none.
 */
type Outcome = 'committed' | 'separate' | 'overtaken' | 'conflict'

async function project(
  outbox: Outbox,
  records: readonly OutboxRecord[],
  projections: readonly Projection[],
  additionalWrites: readonly WriteItem[] = [],
): Promise<Outcome> {
  const { organisationId } = outbox
  await Promise.all(projections.map(async ({ beforeCommit }) => beforeCommit?.(organisationId, records)))
  await failpoint('projection.prepared')
  const countedWrites = writesWithCounts(outbox, records, projections)
  const writes = await Promise.all(
    projections.map(async (projection) => projection.writes?.(organisationId, records) ?? []),
  )
  const failure = await transact([...countedWrites, ...writes.flat(), ...additionalWrites])
  // The condition of the item of counts comes first, and fails after any other run.
  if (failure) return failure.index === 0 ? 'overtaken' : 'conflict'
  await failpoint('projection.committed')
  await Promise.all([
    removeRecords(
      organisationId,
      records.map(({ id }) => id),
    ),
    ...projections.map(async ({ afterCommit }) => afterCommit?.(organisationId, records)),
  ])
  return 'committed'
}

const readCounts = async (organisationId: string): Promise<Item> =>
  (await get(keys.organisationCounts(organisationId))) ?? {}

/**
 * Returns the write of the item of counts, followed by the writes that depend on it. Its condition fails after another
 * run.
 */
export function writesWithCounts(
  { organisationId, counts, projectedIds }: Outbox,
  records: readonly OutboxRecord[],
  projections: readonly Projection[],
): WriteItem[] {
  const parts = projections.flatMap(({ countedWrites }) => countedWrites?.(organisationId, records, counts) ?? [])
  const merge = <Name extends 'add' | 'set' | 'condition'>(name: Name): NonNullable<CountedWrites[Name]> =>
    Object.assign({}, ...parts.map((part) => part[name]))
  const projectedText = [...projectedIds, ...records.map(({ id }) => id)].join(',')
  const change = { add: { ...merge('add'), run: 1 }, set: { ...merge('set'), projected: projectedText } }
  const condition = { ...merge('condition'), run: unchangedCondition(counts['run']) }
  return [
    upsert(keys.organisationCounts(organisationId), change, condition),
    ...parts.flatMap((part) => part.writes ?? []),
  ]
}

const leaseMs = 10_000
const ProjectionLease = z.object({ holder: z.string().optional(), untilMs: z.number().optional() })

/** Prevents several workers from projecting the same records of a backlog, which is safe but costs writes. */
class Lease {
  readonly #key: keys.Key
  readonly #holder = newNonce()
  #renewAtMs: number | undefined

  constructor(organisationId: string) {
    this.#key = keys.projectionLease(organisationId)
  }

  /** Returns false if another worker holds the lease. */
  async hold(): Promise<boolean> {
    if (this.#renewAtMs !== undefined && elapsedMs() < this.#renewAtMs) return true
    const renewAtMs = elapsedMs() + leaseMs / 2
    const change = { set: { holder: this.#holder, untilMs: now() + leaseMs } }
    if (!(await tryUpdate(this.#key, change, { untilMs: { absentOrAtMost: now() } }))) {
      const { holder, untilMs } = ProjectionLease.parse((await get(this.#key)) ?? {})
      // An end too far in the future was stored before the clock was set back, and counts as past.
      if (holder !== this.#holder && isAhead(untilMs ?? 0, leaseMs)) return false
      if (!(await tryUpdate(this.#key, change, { untilMs: unchangedCondition(untilMs) }))) return false
    }
    this.#renewAtMs = renewAtMs
    return true
  }

  /** Returns whether this worker held the lease. */
  async release(): Promise<boolean> {
    if (this.#renewAtMs === undefined) return false
    this.#renewAtMs = undefined
    await tryUpdate(this.#key, { remove: ['holder', 'untilMs'] }, { holder: { is: this.#holder } })
    return true
  }
}
