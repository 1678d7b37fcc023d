import { Bill } from './capacity.ts'
import type { Changes } from './commit-log.ts'
import { validate } from './dynalite.ts'
import { validationError } from './errors.ts'
import { itemPrefix } from './keys.ts'
import { stageWrite } from './staging.ts'
import { finish } from './store.ts'
import type { Store } from './store.ts'
import type { Input, Item, Usage } from './types.ts'
import { isPlanned, planWrite } from './writes.ts'
import type { PlannedWrite } from './writes.ts'

const MAX_WRITES = 25

interface WriteEntry {
  PutRequest?: { Item: Item }
  DeleteRequest?: { Key: Item }
}

/** Writes all items, or rejects the whole batch. */
export async function batchWriteItem(store: Store, input: Input, usage: Usage): Promise<Input> {
  const data = validate('batchWriteItem', input)
  const requests: [string, WriteEntry[]][] = Object.entries(data.RequestItems)
  const entries = requests.flatMap(([tableName, list]) => list.map((entry) => ({ tableName, entry })))
  if (entries.length > MAX_WRITES) throw validationError('Too many items requested for the BatchWriteItem call')
  const plannedWrites = entries.map(({ tableName, entry }) => ({ tableName, plan: planEntry(store, tableName, entry) }))
  rejectDuplicates(plannedWrites.map(({ plan }) => plan))

  const changes: Changes = new Map()
  const bill = new Bill()
  for (const { tableName, plan } of plannedWrites) {
    bill.add(tableName, plan.cost)
    stageWrite(store, changes, plan)
  }
  usage.writeUnits += bill.total()
  await finish(store, changes)
  return { UnprocessedItems: {}, ConsumedCapacity: bill.describe(data.ReturnConsumedCapacity) }
}

function planEntry(store: Store, TableName: string, { PutRequest, DeleteRequest }: WriteEntry): PlannedWrite {
  const result = PutRequest
    ? planWrite(store, { action: 'putItem', data: { TableName, Item: PutRequest.Item }, includesItem: false })
    : planWrite(store, { action: 'deleteItem', data: { TableName, Key: DeleteRequest!.Key }, includesItem: false })
  if (isPlanned(result)) return result
  const isKeyError = /Missing the key|Type mismatch for key/.test(result.error.message)
  throw isKeyError ? validationError('The provided key element does not match the schema') : result.error
}

function rejectDuplicates(plans: PlannedWrite[]): void {
  const items = new Set(plans.map((plan) => itemPrefix(plan.storedTable.description.TableId) + plan.itemKey))
  if (items.size < plans.length) throw validationError('Provided list of item keys contains duplicates')
}
