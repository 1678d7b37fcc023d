import { runPageAction } from './actions.ts'
import { describeCost, readUnitsOf, tableCost, totalOf } from './capacity.ts'
import type { Cost } from './capacity.ts'
import { createKey, mapPaths, validate } from './dynalite.ts'
import type { PageRequest } from './dynalite.ts'
import { passesFilter, projectItem } from './expressions.ts'
import { itemSize } from './item-size.ts'
import { indexPrefix, itemPrefix, recordsUnder } from './keys.ts'
import type { Store } from './store.ts'
import type { Input, Item, Usage } from './types.ts'

const MAX_PAGE_BYTES = 1024 * 1024
const ROWS_PER_READ = 250
const BYTES_PER_READ = 256 * 1024

export const query = (store: Store, input: Input, usage: Usage) => readPages(store, 'query', input, usage)
export const scan = (store: Store, input: Input, usage: Usage) => readPages(store, 'scan', input, usage)

function readPages(store: Store, action: 'query' | 'scan', input: Input, usage: Usage): Promise<Input> {
  const data = validate(action, input)
  const table = store.catalog.requireServingTable(data.TableName).description
  return runPageAction(action, data, table, (request) => readPage(store, request, usage))
}

/** Reads rows in key order up to the limit or 1 MiB, then filters and projects them, as DynamoDB does. */
async function readPage(store: Store, request: PageRequest, usage: Usage): Promise<Input> {
  const { data, startKeyNames } = request
  const { rows, bytes, hasMore } = await readRows(store, request)
  const cost = costOf(request, bytes)
  usage.readUnits += totalOf(cost)
  const items = rows.filter((row) => passesFilter(row, data)).map((row) => projectItem(row, data))
  const lastRow = rows.at(-1)
  return {
    Count: items.length,
    ScannedCount: rows.length,
    ...(data.Select !== 'COUNT' && { Items: items }),
    ...(hasMore && lastRow && { LastEvaluatedKey: mapPaths(startKeyNames, lastRow) }),
    ConsumedCapacity: describeCost(data.ReturnConsumedCapacity, data.TableName, cost),
  }
}

async function readRows(store: Store, request: PageRequest) {
  const limit = request.data.Limit ?? Infinity
  const rows: Item[] = []
  let bytes = 0
  await using iterator = store.database.values(boundsOf(request))
  for (;;) {
    const chunk: Item[] = await iterator.nextv(Math.min(ROWS_PER_READ, limit))
    if (chunk.length === 0) return { rows, bytes, hasMore: false }
    for (const row of chunk) {
      const item = request.fetchesItems ? itemOf(store, request, row) : row
      rows.push(item)
      bytes += itemSize(item)
      if (rows.length >= limit || bytes >= MAX_PAGE_BYTES) return { rows, bytes, hasMore: true }
    }
  }
}

function boundsOf({ table, data, range }: PageRequest) {
  const prefix = data.IndexName ? indexPrefix(table.TableId, data.IndexName) : itemPrefix(table.TableId)
  const { gte, lt } = recordsUnder(prefix)
  const lowerBound = range.gt !== undefined ? { gt: prefix + range.gt } : { gte: gte + (range.gte ?? '') }
  const upperBound = range.lte !== undefined ? { lte: prefix + range.lte } : { lt: range.lt ? prefix + range.lt : lt }
  return { ...lowerBound, ...upperBound, reverse: range.reverse ?? false, highWaterMarkBytes: BYTES_PER_READ }
}

/** A query of a local index may return attributes that the index does not contain. */
function itemOf(store: Store, { table }: PageRequest, row: Item): Item {
  return store.database.getSync(itemPrefix(table.TableId) + createKey(row, table)) ?? row
}

function costOf({ data, isLocalIndex, fetchesItems }: PageRequest, bytes: number): Cost {
  const units = readUnitsOf(bytes, data.ConsistentRead === true)
  if (!data.IndexName || fetchesItems) return tableCost(units)
  return { ...tableCost(0), [isLocalIndex ? 'local' : 'global']: { [data.IndexName]: units } }
}
