import type { Changes } from './commit-log.ts'
import { expiryRecordOf, expirySeconds } from './expiry-records.ts'
import type { ExpiryRow } from './expiry-records.ts'
import { forgetTokens } from './idempotency.ts'
import { expiryRecordsUntil, itemPrefix } from './keys.ts'
import { stageWrite, writeOf } from './staging.ts'
import type { Store } from './store.ts'
import type { Item } from './types.ts'

const RECORDS_A_BATCH = 200
const YEAR_SECONDS = 365 * 24 * 60 * 60
/** The service leaves an item alone whose time is further past than this: more likely a mistake than an expiry. */
const OLDEST_SECONDS = 5 * YEAR_SECONDS

/** Deletes what is over: expired items and old transaction tokens. Reads only the records that are due. */
export async function sweep(store: Store, nowMs: number): Promise<void> {
  await forgetTokens(store, nowMs)
  if (!store.faults.read().expiryPaused) await deleteExpired(store, Math.floor(nowMs / 1000))
}

async function deleteExpired(store: Store, nowSeconds: number): Promise<void> {
  const due = { ...expiryRecordsUntil(nowSeconds), limit: RECORDS_A_BATCH }
  for (;;) {
    const records: [string, ExpiryRow][] = await store.database.iterator(due).all()
    if (records.length === 0) return
    const changes: Changes = new Map()
    for (const [record, row] of records) {
      changes.set(record, null)
      stageDeletion(store, changes, record, row, nowSeconds)
    }
    await store.commits.commit(changes)
  }
}

/** A record that its item or table has outlived means nothing any more. */
function stageDeletion(store: Store, changes: Changes, record: string, row: ExpiryRow, nowSeconds: number): void {
  const stored = store.catalog.find(row.tableName)
  if (!stored || stored.description.TableStatus === 'DELETING') return
  const item: Item | undefined = store.commits.latest(itemPrefix(stored.description.TableId) + row.itemKey)
  if (expiryRecordOf(stored, row.itemKey, item) !== record) return
  if (expirySeconds(stored, item)! < nowSeconds - OLDEST_SECONDS) return
  stageWrite(store, changes, writeOf(stored, row.itemKey, item, undefined))
}
