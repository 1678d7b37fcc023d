import { runItemAction } from './actions.ts'
import { describeCost, itemReadUnits, itemWriteUnits, tableCost, totalOf } from './capacity.ts'
import { createKey, validate, validateKey } from './dynalite.ts'
import { itemPrefix } from './keys.ts'
import { stageWrite } from './staging.ts'
import { finish } from './store.ts'
import type { Store } from './store.ts'
import type { Input, Item, Usage } from './types.ts'
import { isConditionFailure, isPlanned, planWrite, readWriteRequest } from './writes.ts'
import type { WriteAction } from './writes.ts'

export const putItem = (store: Store, input: Input, usage: Usage) => write(store, 'putItem', input, usage)
export const updateItem = (store: Store, input: Input, usage: Usage) => write(store, 'updateItem', input, usage)
export const deleteItem = (store: Store, input: Input, usage: Usage) => write(store, 'deleteItem', input, usage)

/** Plans and stages synchronously, so that no other write interferes, and then waits for the disk. */
async function write(store: Store, action: WriteAction, input: Input, usage: Usage): Promise<Input> {
  const request = readWriteRequest(action, input)
  const { TableName, ReturnConsumedCapacity } = request.data
  delete request.data.ReturnConsumedCapacity
  const plan = planWrite(store, request)
  const changes = new Map<string, unknown>()
  if (!isPlanned(plan)) {
    if (isConditionFailure(plan.error)) usage.writeUnits += itemWriteUnits(plan.before)
    await finish(store, changes)
    throw plan.error
  }
  usage.writeUnits += totalOf(plan.cost)
  stageWrite(store, changes, plan)
  await finish(store, changes)
  const { Attributes }: { Attributes?: Item } = plan.output
  return {
    ...(Attributes && Object.keys(Attributes).length > 0 && { Attributes }),
    ConsumedCapacity: describeCost(ReturnConsumedCapacity, TableName, plan.cost),
  }
}

/** Reads from the disk, which has all acknowledged writes, so every read is strongly consistent. */
export function getItem(store: Store, input: Input, usage: Usage): Input {
  const data = validate('getItem', input)
  const { TableName, ReturnConsumedCapacity } = data
  delete data.ReturnConsumedCapacity
  const table = store.catalog.requireServingTable(TableName).description
  const error = validateKey(data.Key!, table)
  if (error) throw error
  const record = itemPrefix(table.TableId) + createKey(data.Key!, table)
  const item: Item | undefined = store.database.getSync(record)
  const units = itemReadUnits(item, data.ConsistentRead === true)
  usage.readUnits += units
  const { output } = runItemAction('getItem', data, table, item)
  return { ...output, ConsumedCapacity: describeCost(ReturnConsumedCapacity, TableName, tableCost(units)) }
}
