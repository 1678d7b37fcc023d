import type { Changes } from './commit-log.ts'
import { stageExpiry } from './expiry-records.ts'
import type { IndexChanges, IndexWriter } from '../hooks.ts'
import { indexChanges } from './indexes.ts'
import type { IndexChange } from './indexes.ts'
import { itemPrefix } from './keys.ts'
import type { Item, StoredTable } from './types.ts'

export interface Write {
  storedTable: StoredTable
  itemKey: string
  before: Item | undefined
  after: Item | undefined
  indexChanges: IndexChange[]
}

export function writeOf(
  storedTable: StoredTable,
  itemKey: string,
  before: Item | undefined,
  after: Item | undefined,
): Write {
  return { storedTable, itemKey, before, after, indexChanges: indexChanges(storedTable.description, before, after) }
}

export function stageWrite({ indexes }: { indexes: IndexWriter }, changes: Changes, write: Write): void {
  changes.set(itemPrefix(write.storedTable.description.TableId) + write.itemKey, write.after ?? null)
  const rowsOf = (isLocal: boolean) =>
    write.indexChanges.filter((change) => change.isLocal === isLocal).flatMap(rowChanges)
  for (const [key, row] of rowsOf(true)) changes.set(key, row)
  const globalRows = rowsOf(false)
  if (globalRows.length > 0) indexes.stage(changes, globalRows)
  stageExpiry(changes, write.storedTable, write.itemKey, write.before, write.after)
}

function rowChanges({ deletedKey, newRow }: IndexChange): IndexChanges {
  const changes: IndexChanges = []
  if (deletedKey !== undefined) changes.push([deletedKey, null])
  if (newRow) changes.push([newRow.key, newRow.row])
  return changes
}
