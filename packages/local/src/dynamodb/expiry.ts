import type { Changes } from './commit-log.ts'
import { expiryRecord, expiryRecordsUntil, itemPrefix } from './keys.ts'
import { stageWrite } from './writes.ts'
import type { Store } from './store.ts'
import type { Item, StoredTable } from './types.ts'

const ROWS_A_BATCH = 200
const YEAR_SECONDS = 365 * 24 * 60 * 60
/** The service leaves items alone whose time is further past than this: more likely a mistake than an expiry. */
const OLDEST_SECONDS = 5 * YEAR_SECONDS

interface ExpiryRow {
  tableName: string
  itemKey: string
}

/** Keeps the expiry records in step with an item, in the batch of the item. */
export function stageExpiry(
  changes: Changes,
  stored: StoredTable,
  itemKey: string,
  before: Item | undefined,
  after: Item | undefined,
): void {
  const old = expiryRecordOf(stored, itemKey, before)
  const current = expiryRecordOf(stored, itemKey, after)
  if (old && old !== current) changes.set(old, null)
  if (current) changes.set(current, { tableName: stored.description.TableName, itemKey } satisfies ExpiryRow)
}

/** Deletes the items whose time has come. Reads the due records only, never a whole table. */
export async function deleteExpired(store: Store, nowSeconds: number): Promise<void> {
  const due = { ...expiryRecordsUntil(nowSeconds), limit: ROWS_A_BATCH }
  for (;;) {
    const records = (await store.database.iterator(due).all()) as [string, ExpiryRow][]
    if (records.length === 0) return
    const changes: Changes = new Map()
    for (const [record, row] of records) {
      changes.set(record, null)
      stageDeletion(store, record, row, nowSeconds, changes)
    }
    await store.commits.commit(changes)
  }
}

/** A record that its item or table has outlived stands for nothing. */
function stageDeletion(store: Store, record: string, row: ExpiryRow, nowSeconds: number, changes: Changes): void {
  const stored = store.catalog.find(row.tableName)
  if (!stored || stored.description.TableStatus === 'DELETING') return
  const item = store.commits.latest(itemPrefix(stored.description.TableId) + row.itemKey) as Item | undefined
  if (expiryRecordOf(stored, row.itemKey, item) !== record) return
  if (expirySeconds(stored, item)! <= nowSeconds - OLDEST_SECONDS) return
  stageWrite(store, changes, { stored, itemKey: row.itemKey, before: item, after: undefined })
}

function expiryRecordOf(stored: StoredTable, itemKey: string, item: Item | undefined): string | undefined {
  const seconds = expirySeconds(stored, item)
  return seconds === undefined ? undefined : expiryRecord(seconds, stored.description.TableId, itemKey)
}

function expirySeconds(stored: StoredTable, item: Item | undefined): number | undefined {
  const text = stored.timeToLive && item?.[stored.timeToLive.attribute]?.N
  const seconds = Math.floor(Number(text))
  return text && seconds > 0 && Number.isSafeInteger(seconds) ? seconds : undefined
}
