import type { Changes } from './commit-log.ts'
import { expiryRecordOf, expiresAtSecondsOf } from './expiry-records.ts'
import type { ExpiryRow } from './expiry-records.ts'
import { deleteExpiredTokens } from './idempotency.ts'
import { expiryRangeUntil, itemPrefix } from './keys.ts'
import { stageWrite, writeOf } from './staging.ts'
import type { Store } from './store.ts'
import type { Item } from './types.ts'

const RECORDS_PER_BATCH = 200
const YEAR_SECONDS = 365 * 24 * 60 * 60
/**
 * As in DynamoDB, an item whose expiry time is more than five years ago never expires, because such a time is probably
 * a mistake.
 */
const MAX_OVERDUE_SECONDS = 5 * YEAR_SECONDS

/** Deletes expired items and transaction tokens. Reads only the records that are due. */
export async function sweep(store: Store, nowMs: number): Promise<void> {
  await deleteExpiredTokens(store, nowMs)
  await deleteExpiredItems(store, Math.floor(nowMs / 1000))
}

async function deleteExpiredItems(store: Store, nowSeconds: number): Promise<void> {
  const dueRange = { ...expiryRangeUntil(nowSeconds), limit: RECORDS_PER_BATCH }
  for (;;) {
    const records: [string, ExpiryRow][] = await store.database.iterator(dueRange).all()
    if (records.length === 0) return
    const changes: Changes = new Map()
    for (const [record, row] of records) {
      changes.set(record, null)
      stageDeletion(store, changes, record, row, nowSeconds)
    }
    await store.commits.commit(changes)
  }
}

/** Skips an obsolete record: its item or table has changed. */
function stageDeletion(store: Store, changes: Changes, record: string, row: ExpiryRow, nowSeconds: number): void {
  const storedTable = store.catalog.find(row.tableName)
  if (!storedTable || storedTable.description.TableStatus === 'DELETING') return
  const item: Item | undefined = store.commits.latestValue(itemPrefix(storedTable.description.TableId) + row.itemKey)
  if (expiryRecordOf(storedTable, row.itemKey, item) !== record) return
  if (expiresAtSecondsOf(storedTable, item)! < nowSeconds - MAX_OVERDUE_SECONDS) return
  stageWrite(store, changes, writeOf(storedTable, row.itemKey, item, undefined))
}
