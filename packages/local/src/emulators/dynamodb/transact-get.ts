import { runItemAction } from './actions.ts'
import { Bill, itemReadUnits, tableCost, transactional } from './capacity.ts'
import { createKey, validate, validateKey } from './dynalite.ts'
import { transactionCanceled, validationError } from './errors.ts'
import type { CancellationReason } from './errors.ts'
import { isObject } from './json.ts'
import { itemPrefix } from './keys.ts'
import type { Store } from './store.ts'
import { transactionMembers } from './transaction-request.ts'
import type { Input, Item, Usage } from './types.ts'

const NO_REASON: CancellationReason = { Code: 'None' }

/** Reads all items as of one moment. */
export async function transactGetItems(store: Store, input: Input, usage: Usage): Promise<Input> {
  const reads = transactionMembers(input).map((member) => readOf(store, member))
  const reasons = reads.map(({ invalid }) =>
    invalid ? { Code: 'ValidationError', Message: invalid.message } : NO_REASON,
  )
  if (reasons.some((reason) => reason !== NO_REASON)) throw transactionCanceled(reasons)

  const bill = new Bill()
  // Without a snapshot, a batch between two reads would be visible in part.
  await using snapshot = store.database.snapshot()
  const responses = reads.map(({ data, table }) => {
    const record = itemPrefix(table.TableId) + createKey(data.Key!, table)
    const item: Item | undefined = store.database.getSync(record, { snapshot })
    bill.add(table.TableName, transactional(tableCost(itemReadUnits(item, true))))
    return item ? { Item: runItemAction('getItem', data, table, item).output.Item } : {}
  })
  usage.readUnits += bill.total()
  const ConsumedCapacity = bill.describe(input.ReturnConsumedCapacity, 'ReadCapacityUnits')
  return { Responses: responses, ConsumedCapacity }
}

function readOf(store: Store, member: Input) {
  if (!isObject(member.Get)) throw validationError('TransactItems can only contain Get')
  const data = validate('getItem', member.Get)
  const table = store.catalog.serving(data.TableName).description
  return { data, table, invalid: validateKey(data.Key!, table) }
}
