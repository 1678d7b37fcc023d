import { Bill, itemWriteUnits, TRANSACTION_FACTOR, transactionCost } from './capacity.ts'
import type { Changes } from './commit-log.ts'
import { errorName, transactionCanceledError, validationError } from './errors.ts'
import type { CancellationReason } from './errors.ts'
import { readToken, stageToken, wasExecuted } from './idempotency.ts'
import { itemSize } from './item-size.ts'
import { stageWrite } from './staging.ts'
import { finish } from './store.ts'
import type { Store } from './store.ts'
import { readTransactWrite, transactionMembers } from './transaction-request.ts'
import type { Input, Usage } from './types.ts'
import { isConditionFailure, isPlanned, planWrite } from './writes.ts'
import type { PlannedWrite, FailedWrite, WriteRequest } from './writes.ts'

const MAX_TRANSACTION_BYTES = 4 * 1024 * 1024

/**
 * Performs all writes or none, in one batch with the client's token. Plans synchronously, so that no other write
 * interferes.
 */
export async function transactWriteItems(store: Store, input: Input, usage: Usage): Promise<Input> {
  const members = transactionMembers(input)
  const token = readToken(input.ClientRequestToken, members)
  const requests = members.map(readTransactWrite)
  const changes: Changes = new Map()
  if (token && wasExecuted(store, token)) {
    await finish(store, changes)
    return {}
  }
  const results = requests.map((request) => planWrite(store, request))
  const plans = results.filter(isPlanned)
  rejectRepeatedItems(requests, results)
  if (plans.length < results.length) {
    usage.writeUnits += attemptUnits(results)
    await finish(store, changes)
    throw transactionCanceledError(results.map(reasonOf))
  }
  rejectTooManyBytes(plans)

  const bill = new Bill()
  for (const plan of plans) {
    bill.add(plan.storedTable.description.TableName, transactionCost(plan.cost))
    if (plan.before !== plan.after) stageWrite(store, changes, plan)
  }
  if (token) stageToken(changes, token)
  usage.writeUnits += bill.total()
  await finish(store, changes)
  return { ConsumedCapacity: bill.describe(input.ReturnConsumedCapacity, 'WriteCapacityUnits') }
}

function reasonOf(result: PlannedWrite | FailedWrite): CancellationReason {
  if (isPlanned(result)) return { Code: 'None' }
  const { error } = result
  if (!isConditionFailure(error)) {
    if (errorName(error) !== 'ValidationException') throw error
    return { Code: 'ValidationError', Message: error.message }
  }
  const item = error.body['Item'] === undefined ? {} : { Item: error.body['Item'] }
  return { Code: 'ConditionalCheckFailed', Message: error.message, ...item }
}

/** As in DynamoDB, a cancelled transaction consumes capacity for the items that it checked. */
function attemptUnits(results: (PlannedWrite | FailedWrite)[]): number {
  return results.reduce((units, { before }) => units + TRANSACTION_FACTOR * itemWriteUnits(before), 0)
}

function rejectRepeatedItems(requests: WriteRequest[], results: (PlannedWrite | FailedWrite)[]): void {
  const items = results.flatMap(({ itemKey }, position) =>
    itemKey === undefined ? [] : [`${requests[position]!.data.TableName} ${itemKey}`],
  )
  if (new Set(items).size < items.length) {
    throw validationError('Transaction request cannot include multiple operations on one item')
  }
}

function rejectTooManyBytes(plans: PlannedWrite[]): void {
  const bytes = plans.reduce((sum, { before, after }) => sum + itemSize(after ?? before ?? {}), 0)
  if (bytes > MAX_TRANSACTION_BYTES) {
    throw validationError(
      `Collection size exceeded: the items of a transaction may have ${MAX_TRANSACTION_BYTES} bytes together`,
    )
  }
}
