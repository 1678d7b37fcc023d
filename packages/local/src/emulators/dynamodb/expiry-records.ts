import type { Changes } from './commit-log.ts'
import { expiryRecord, MAX_EXPIRY_SECONDS } from './keys.ts'
import type { Item, StoredTable } from './types.ts'

/** Value of an expiry record, which refers to the item that may be due. */
export interface ExpiryRow {
  tableName: string
  itemKey: string
}

/** Updates the expiry record in the batch of its item. */
export function stageExpiry(
  changes: Changes,
  storedTable: StoredTable,
  itemKey: string,
  before: Item | undefined,
  after: Item | undefined,
): void {
  if (!storedTable.timeToLive) return
  const oldRecord = expiryRecordOf(storedTable, itemKey, before)
  const currentRecord = expiryRecordOf(storedTable, itemKey, after)
  if (oldRecord && oldRecord !== currentRecord) changes.set(oldRecord, null)
  if (currentRecord)
    changes.set(currentRecord, { tableName: storedTable.description.TableName, itemKey } satisfies ExpiryRow)
}

/** Returns the key of the item's expiry record; undefined if the item never expires. */
export function expiryRecordOf(storedTable: StoredTable, itemKey: string, item: Item | undefined): string | undefined {
  const expiresAtSeconds = expiresAtSecondsOf(storedTable, item)
  return expiresAtSeconds === undefined
    ? undefined
    : expiryRecord(expiresAtSeconds, storedTable.description.TableId, itemKey)
}

export function expiresAtSecondsOf(storedTable: StoredTable, item: Item | undefined): number | undefined {
  const text = storedTable.timeToLive && item?.[storedTable.timeToLive.attribute]?.N
  if (text === undefined) return undefined
  const expiresAtSeconds = Math.floor(Number(text))
  return expiresAtSeconds > 0 && expiresAtSeconds <= MAX_EXPIRY_SECONDS ? expiresAtSeconds : undefined
}
