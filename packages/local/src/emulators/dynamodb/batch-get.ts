import { Bill, itemReadUnits, tableCost } from './capacity.ts'
import { createKey, validate, validateKey } from './dynalite.ts'
import type { Data } from './dynalite.ts'
import { projectItem } from './expressions.ts'
import { itemSize } from './item-size.ts'
import { itemPrefix } from './keys.ts'
import type { Store } from './store.ts'
import type { Input, Item, Usage } from './types.ts'

const MAX_RESPONSE_BYTES = 16 * 1024 * 1024

interface KeysEntry extends Pick<Data, '_projection' | 'AttributesToGet' | 'ConsistentRead'> {
  Keys: Item[]
}

interface KeyRead {
  tableName: string
  entry: KeysEntry
  key: Item
  record: string
}

/** Reads up to 16 MiB of items. Returns the remaining keys as unprocessed. */
export function batchGetItem(store: Store, input: Input, usage: Usage): Input {
  const data = validate('batchGetItem', input)
  const tables: [string, KeysEntry][] = Object.entries(data.RequestItems)
  const reads = tables.flatMap(([tableName, entry]) => keyReads(store, tableName, entry))
  const responses: Record<string, Item[]> = Object.fromEntries(tables.map(([tableName]) => [tableName, []]))
  const unprocessedKeys: Record<string, KeysEntry> = {}
  const bill = new Bill()
  let bytes = 0
  for (const { tableName, entry, key, record } of shuffle(reads)) {
    const item: Item | undefined = store.database.getSync(record)
    bytes += item ? itemSize(item) : 0
    if (bytes > MAX_RESPONSE_BYTES) {
      unprocessedKeys[tableName] ??= { ...withoutParsedExpressions(entry), Keys: [] }
      unprocessedKeys[tableName].Keys.push(key)
      continue
    }
    bill.add(tableName, tableCost(itemReadUnits(item, entry.ConsistentRead === true)))
    if (item) responses[tableName]!.push(projectItem(item, entry))
  }
  usage.readUnits += bill.total()
  const ConsumedCapacity = bill.describe(data.ReturnConsumedCapacity)
  return { Responses: responses, UnprocessedKeys: unprocessedKeys, ConsumedCapacity }
}

function keyReads(store: Store, tableName: string, entry: KeysEntry): KeyRead[] {
  const table = store.catalog.requireServingTable(tableName).description
  return entry.Keys.map((key) => {
    const error = validateKey(key, table)
    if (error) throw error
    return { tableName, entry, key, record: itemPrefix(table.TableId) + createKey(key, table) }
  })
}

/** DynamoDB guarantees no order. A random order exposes callers that rely on one. */
function shuffle(reads: KeyRead[]): KeyRead[] {
  const orderedReads = reads.map((read) => ({ read, order: Math.random() }))
  return orderedReads.toSorted((left, right) => left.order - right.order).map(({ read }) => read)
}

function withoutParsedExpressions({ _projection, ...entry }: KeysEntry): KeysEntry {
  return entry
}
