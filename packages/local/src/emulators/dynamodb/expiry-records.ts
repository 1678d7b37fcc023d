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
  stored: StoredTable,
  itemKey: string,
  before: Item | undefined,
  after: Item | undefined,
): void {
  if (!stored.timeToLive) return
  const oldRecord = expiryRecordOf(stored, itemKey, before)
  const currentRecord = expiryRecordOf(stored, itemKey, after)
  if (oldRecord && oldRecord !== currentRecord) changes.set(oldRecord, null)
  if (currentRecord)
    changes.set(currentRecord, { tableName: stored.description.TableName, itemKey } satisfies ExpiryRow)
}

/** Returns the key of the item's expiry record; undefined if the item never expires. */
export function expiryRecordOf(stored: StoredTable, itemKey: string, item: Item | undefined): string | undefined {
  const expiresAtSeconds = expiresAtSecondsOf(stored, item)
  return expiresAtSeconds === undefined
    ? undefined
    : expiryRecord(expiresAtSeconds, stored.description.TableId, itemKey)
}

export function expiresAtSecondsOf(stored: StoredTable, item: Item | undefined): number | undefined {
  const text = stored.timeToLive && item?.[stored.timeToLive.attribute]?.N
  if (text === undefined) return undefined
  const expiresAtSeconds = Math.floor(Number(text))
  return expiresAtSeconds > 0 && expiresAtSeconds <= MAX_EXPIRY_SECONDS ? expiresAtSeconds : undefined
}
