import { now } from './clock.ts'
import * as keys from './db/keys.ts'
import { get, type Item, pause, query, remove, replace, type Step, transact } from './db/table.ts'
import { contended, Fault } from './fault.ts'
import { failpoint } from './failpoint.ts'
import { log } from './log.ts'
import { announceRecords } from './queue.ts'
import { type OutboxRecord, parseRecord } from './record.ts'

/**
 * The books of an organisation: audit trail, totals, timelines, notifications, webhook deliveries. Everything that a
 * change means beyond itself is entered here, later and in one place, from the record that the change left in the outbox.
 * Entering is repeatable up to the closing transaction, which happens once: it makes the entries that count, and takes
 * the records out of the outbox.
 */

/** A book: what it makes of records. */
export interface Book {
  name: string
  /** Work that may happen twice, and happens at least once. */
  prepare?: (organisationId: string, records: readonly OutboxRecord[]) => Promise<void>
  /** Writes that happen exactly once, with the closing transaction; refused where somebody else has closed meanwhile. */
  entries?: (organisationId: string, records: readonly OutboxRecord[]) => Promise<readonly Step[]>
  /** Work that follows, may happen twice, and may be lost: something else finds it then. */
  follow?: (organisationId: string, records: readonly OutboxRecord[]) => Promise<void>
}

/** Records of one closing. A transaction holds 100 writes, and a record needs up to four. */
const recordsAtOnce = 20
const attempts = 12

/** A function has 30 seconds. What an organisation has beyond this is left to the next message. */
const workMs = 8000

/** Enters all records of an organisation into the books, oldest first. Several callers may do so at once. */
export async function bookRecords(organisationId: string, books: readonly Book[]): Promise<void> {
  const endMs = now() + workMs
  let lost = 0
  for (;;) {
    if (now() > endMs) return announceRecords(organisationId)
    const { items } = await query({ pk: keys.outbox(organisationId, '').pk, limit: recordsAtOnce })
    if (items.length === 0) return
    const records = await readableOf(items)
    const isClosed = records.length === 0 || (await bookSafely(organisationId, records, books))
    lost = isClosed ? 0 : lost + 1
    if (lost === attempts) throw contended()
    if (!isClosed) await pause(lost)
  }
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

const setAside = async ({ pk, sk, ...rest }: Item): Promise<void> => {
  const [key, aside] = [{ pk: String(pk), sk: String(sk) }, keys.unreadableRecord(String(pk), String(sk))]
  const { duepk: _, duesk: __, ...kept } = rest
  await transact([remove(key), replace(aside, kept)])
}

/** A record that some book chokes on must not keep the others back either. What may pass by itself is thrown. */
async function bookSafely(organisationId: string, records: readonly OutboxRecord[], books: readonly Book[]) {
  try {
    return await book(organisationId, records, books)
  } catch (error) {
    if (error instanceof Fault) throw error
    const [first, ...others] = records
    if (first !== undefined && others.length === 0) await giveUp(first, error)
    else for (const record of records) await bookSafely(organisationId, [record], books)
    return true
  }
}

async function giveUp({ organisationId, id }: OutboxRecord, cause: unknown): Promise<void> {
  log('error', 'A record cannot be entered into the books and is set aside', { organisationId, recordId: id, cause })
  const item = await get(keys.outbox(organisationId, id))
  if (item !== undefined) await setAside(item)
}

/** Answers whether the records were closed; false where somebody else closed some of them meanwhile. */
async function book(organisationId: string, records: readonly OutboxRecord[], books: readonly Book[]) {
  await Promise.all(books.map(async ({ prepare }) => prepare?.(organisationId, records)))
  await failpoint('books.prepared')
  const entries = await Promise.all(books.map(async ({ entries }) => entries?.(organisationId, records) ?? []))
  const closing = records.map(({ id }) => remove(keys.outbox(organisationId, id), { pk: { present: true } }))
  if (await transact([...closing, ...entries.flat()])) return false
  await failpoint('books.closed')
  await Promise.all(books.map(async ({ follow }) => follow?.(organisationId, records)))
  return true
}
