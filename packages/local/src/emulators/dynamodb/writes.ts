import { runItemAction } from './actions.ts'
import type { Cost } from './capacity.ts'
import { createKey, validate, validateItem, validateKey } from './dynalite.ts'
import type { Data } from './dynalite.ts'
import { constraintError, errorName, isAwsError } from './errors.ts'
import type { AwsError } from './errors.ts'
import { writeCost } from './indexes.ts'
import { keyError } from './key-limits.ts'
import { itemPrefix } from './keys.ts'
import { writeOf } from './staging.ts'
import type { Write } from './staging.ts'
import type { Store } from './store.ts'
import type { Input, Item, TableDescription } from './types.ts'

export type WriteAction = 'putItem' | 'updateItem' | 'deleteItem' | 'conditionCheck'

export interface WriteRequest {
  action: WriteAction
  data: Data
  /** Whether the error of a failed condition includes the item. */
  includesItem: boolean
}

/** A write that was computed from the newest state. It takes effect only when it is staged and committed. */
export interface PlannedWrite extends Write {
  output: Input
  cost: Cost
}

/** `itemKey` is absent if the key is invalid. */
export interface FailedWrite {
  error: AwsError
  itemKey?: string
  before?: Item | undefined
}

/** Throws a validation error if the request is invalid. */
export function readWriteRequest(action: WriteAction, input: Input): WriteRequest {
  const returnValues: unknown = input.ReturnValuesOnConditionCheckFailure ?? 'NONE'
  if (returnValues !== 'ALL_OLD' && returnValues !== 'NONE') {
    const path = 'returnValuesOnConditionCheckFailure'
    throw constraintError(JSON.stringify(returnValues), path, 'Member must satisfy enum value set: [ALL_OLD, NONE]')
  }
  const data = validate(action === 'conditionCheck' ? 'deleteItem' : action, input)
  return { action, data, includesItem: returnValues === 'ALL_OLD' }
}

/** Returns the error of an invalid item, key or condition. Throws if the table does not exist. */
export function planWrite(store: Store, request: WriteRequest): PlannedWrite | FailedWrite {
  const { action, data, includesItem } = request
  const storedTable = store.catalog.requireServingTable(data.TableName)
  const table = storedTable.description
  const invalid = data.Item ? validateItem(data.Item, table) : validateKey(data.Key!, table)
  if (invalid) return { error: invalid }
  const itemKey = createKey(data.Item ?? data.Key!, table)
  const before: Item | undefined = store.commits.latestValue(itemPrefix(table.TableId) + itemKey)
  try {
    const { output, after } = runWriteAction(action, data, table, before)
    const write = writeOf(storedTable, itemKey, before, after)
    return { ...write, output, cost: writeCost(before, after, write.indexChanges) }
  } catch (error) {
    if (!isAwsError(error)) throw error
    if (includesItem && before && isConditionFailure(error)) error.body['Item'] = before
    return { error: error, itemKey, before }
  }
}

/** A condition check is evaluated as a delete whose result is discarded. */
function runWriteAction(action: WriteAction, data: Data, table: TableDescription, before: Item | undefined) {
  if (action === 'conditionCheck') return { ...runItemAction('deleteItem', data, table, before), after: before }
  const outcome = runItemAction(action, data, table, before)
  const invalidKey = outcome.after && keyError(table, outcome.after)
  if (invalidKey) throw invalidKey
  return outcome
}

export function isPlanned(result: PlannedWrite | FailedWrite): result is PlannedWrite {
  return !('error' in result)
}

export function isConditionFailure(error: AwsError): boolean {
  return errorName(error) === 'ConditionalCheckFailedException'
}
