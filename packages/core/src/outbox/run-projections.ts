import { statusOf } from '@platform/contract/errors'
import { now } from '../clock.ts'
import * as keys from '../db/keys.ts'
import { get, type Item, backOff, query, remove, replace, type WriteItem } from '../db/table.ts'
import { transact } from '../db/transact.ts'
import { storeContention, PlatformError } from '../error.ts'
import { failpoint } from '../lib/failpoint.ts'
import { log } from '../log.ts'
import { recordMetric } from '../lib/metrics.ts'
import { type OutboxRecord, parseRecord } from './record.ts'

/**
 * The books of an organisation: audit trail, totals, timelines, notifications, webhook deliveries. Everything that a
 * change means beyond itself is entered here, later and in one place, from the record that the change left in the outbox.
 * Entering is repeatable up to the closing transaction, which happens once: it makes the entries that count, and takes
 * the records out of the outbox.
 */

/** A book: what it makes of records. */
export interface Projection {
  name: string
  /** Work that may happen twice, and happens at least once. */
  prepare?: (organisationId: string, records: readonly OutboxRecord[]) => Promise<void>
  /** Writes that happen exactly once, with the closing transaction; refused where somebody else has closed meanwhile. */
  entries?: (organisationId: string, records: readonly OutboxRecord[]) => Promise<readonly WriteItem[]>
  /** Work that follows, may happen twice, and may be lost: something else finds it then. */
  follow?: (organisationId: string, records: readonly OutboxRecord[]) => Promise<void>
}

/** Records of one closing. A transaction holds 100 writes, and a record needs up to four. */
const recordsAtOnce = 20
const eventsAtOnce = 60
const attempts = 12

/**
 * Enters all records of an organisation into the books, oldest first, until a time. Several callers may do so at once.
 * Answers whether none is left.
 */
export async function runProjections(
  organisationId: string,
  books: readonly Projection[],
  endMs = Number.POSITIVE_INFINITY,
): Promise<boolean> {
  let lost = 0
  for (;;) {
    const { items } = await query({ pk: keys.outbox(organisationId, '').pk, limit: recordsAtOnce })
    if (items.length === 0) return true
    if (now() > endMs) return false
    const records = closedTogether(await readableOf(items))
    measureLag(records[0])
    const isClosed = records.length === 0 || (await bookSafely(organisationId, records, books))
    lost = isClosed ? 0 : lost + 1
    if (lost === attempts) throw storeContention()
    if (!isClosed) await backOff(lost)
  }
}

function measureLag(oldest: OutboxRecord | undefined): void {
  if (oldest !== undefined) recordMetric('BooksLag', (now() - oldest.atMs) / 1000)
}

/** As many records as hold few events: what a closing does for notifications and webhooks grows with those. */
function closedTogether(records: readonly OutboxRecord[]): readonly OutboxRecord[] {
  let events = 0
  const tooMany = records.findIndex((record) => (events += record.events.length) > eventsAtOnce)
  return tooMany < 0 ? records : records.slice(0, Math.max(tooMany, 1))
}

const readableOf = async (items: readonly Item[]): Promise<OutboxRecord[]> =>
  (await Promise.all(items.map(readable))).filter((record) => record !== undefined)

/** A record that nobody can read must not keep the others back: it is set aside, and the log tells where. */
async function readable(item: Item): Promise<OutboxRecord | undefined> {
  try {
    return parseRecord(item)
  } catch (error) {
    log('error', 'A record cannot be read and is set aside', { pk: item['pk'], sk: item['sk'], cause: error })
    await setAside(item)
    return undefined
  }
}

const setAside = async (item: Item): Promise<void> => {
  await transact([remove({ pk: String(item['pk']), sk: String(item['sk']) }), asideStep(item)])
}

/** The step that copies a record to where people look for what the books could not take. */
function asideStep(item: Item): WriteItem {
  recordMetric('RecordsSetAside')
  const { pk, sk, duepk: _, duesk: __, ...kept } = item
  return replace(keys.quarantinedRecord(String(pk), String(sk)), kept)
}

/** A record that some book cannot take must not keep back the others. What may pass by itself is thrown. */
async function bookSafely(organisationId: string, records: readonly OutboxRecord[], books: readonly Projection[]) {
  try {
    return await book(organisationId, records, books)
  } catch (error) {
    if (mayPass(error)) throw error
    for (const record of records) await bookWhatCan(organisationId, record, books)
    return true
  }
}

const mayPass = (error: unknown): boolean => error instanceof PlatformError && statusOf(error.code) === 503

/** Enters a record into the books that can take it; a copy is set aside for those that cannot, with a line in the log. */
async function bookWhatCan(organisationId: string, record: OutboxRecord, books: readonly Projection[]): Promise<void> {
  const tried = await Promise.all(books.map(async (each) => ({ each, canTake: await canTake(each, record) })))
  const able = tried.filter(({ canTake }) => canTake).map(({ each }) => each)
  const item = await get(keys.outbox(organisationId, record.id))
  if (item === undefined) return
  const copy = able.length === books.length ? [] : [asideStep(item)]
  try {
    await book(organisationId, [record], able, copy)
  } catch (cause) {
    if (mayPass(cause)) throw cause
    // No book refuses it by itself, but the store refuses what they make of it.
    log('error', 'A record cannot be entered and is set aside', { organisationId, recordId: record.id, cause })
    await setAside(item)
  }
}

async function canTake({ name, prepare, entries }: Projection, record: OutboxRecord): Promise<boolean> {
  const { organisationId, id: recordId } = record
  try {
    await prepare?.(organisationId, [record])
    await entries?.(organisationId, [record])
    return true
  } catch (cause) {
    if (mayPass(cause)) throw cause
    log('error', 'A book cannot take a record', { book: name, organisationId, recordId, cause })
    return false
  }
}

/** Answers whether the records were closed; false where somebody else closed some of them meanwhile. */
async function book(
  organisationId: string,
  records: readonly OutboxRecord[],
  books: readonly Projection[],
  more: readonly WriteItem[] = [],
): Promise<boolean> {
  await Promise.all(books.map(async ({ prepare }) => prepare?.(organisationId, records)))
  await failpoint('books.prepared')
  const entries = await Promise.all(books.map(async ({ entries }) => entries?.(organisationId, records) ?? []))
  const closing = records.map(({ id }) => remove(keys.outbox(organisationId, id), { pk: { present: true } }))
  if (await transact([...closing, ...entries.flat(), ...more])) return false
  await failpoint('books.closed')
  await Promise.all(books.map(async ({ follow }) => follow?.(organisationId, records)))
  return true
}
