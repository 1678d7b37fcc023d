import { dynamoError, transactionCanceledError } from '@platform/local/emulators/dynamodb/errors'
import type { Input } from '@platform/local/emulators/dynamodb/types'
import type { DynamoDbHooks } from '@platform/local/emulators/hooks'
import { NoResponse } from '@platform/local/emulators/http/error'
import { createSwitches, faultRoutes, type FaultSwitches } from './fault-settings.ts'
import { IndexLag } from './index-lag.ts'

/**
 * Faults that can occur with DynamoDB in the cloud. Rates are shares from 0 to 1: of items for `unprocessedRate`, otherwise of
 * calls.
 */
export interface StoreFaults {
  seed: number
  operations: readonly string[] | null
  /** Number of faults left, not counting index lag; null for no limit. */
  remaining: number | null
  throttleRate: number
  /** Share of items that batch calls return as unprocessed. The first item of a call is always processed. */
  unprocessedRate: number
  /** Rejects transactions with TransactionCanceledException, and single writes with TransactionConflictException. */
  transactionConflictRate: number
  lostAcknowledgementRate: number
  /** Neither performs calls nor responds to them. */
  hangRate: number
  indexLagMs: number
}

const noFaults: StoreFaults = {
  seed: 1,
  operations: null,
  remaining: null,
  throttleRate: 0,
  unprocessedRate: 0,
  transactionConflictRate: 0,
  lostAcknowledgementRate: 0,
  hangRate: 0,
  indexLagMs: 0,
}

const singleWrites = ['PutItem', 'UpdateItem', 'DeleteItem']
const writes = [...singleWrites, 'BatchWriteItem', 'TransactWriteItems']
const itemCalls = [...writes, 'GetItem', 'BatchGetItem', 'TransactGetItems', 'Query', 'Scan']

const affectedOperations = {
  throttle: itemCalls,
  unprocessed: ['BatchGetItem', 'BatchWriteItem'],
  transactionConflict: ['TransactWriteItems', 'TransactGetItems', ...singleWrites],
  lostAcknowledgement: writes,
  hang: itemCalls,
}

export function createStoreFaults(): FaultSwitches<StoreFaults> & { hooks: DynamoDbHooks } {
  const switches = createSwitches(noFaults)
  const { read, set, random } = switches
  let indexLag: IndexLag | undefined

  const occurs = (kind: keyof typeof affectedOperations, operation: string): boolean => {
    const { operations, remaining, [`${kind}Rate` as const]: rate } = read()
    if (rate === 0 || remaining === 0 || !affectedOperations[kind].includes(operation)) return false
    if (operations?.includes(operation) === false || random() >= rate) return false
    if (remaining !== null) set({ remaining: remaining - 1 })
    return true
  }

  const faults = {
    ...switches,
    set: (changes: Partial<StoreFaults>) => {
      set(changes)
      indexLag?.schedule()
      return read()
    },
    reset: () => faults.set(noFaults),
  }
  const hooks: DynamoDbHooks = {
    intercept: async (operation, input, run) => {
      if (occurs('hang', operation)) throw new NoResponse({ hangs: true })
      if (occurs('throttle', operation)) throw throttlingError
      if (occurs('transactionConflict', operation)) throw conflictIn(input, random)
      const response = await runWithoutSome(input, run, () => occurs('unprocessed', operation))
      if (occurs('lostAcknowledgement', operation)) throw new NoResponse()
      return response
    },
    openIndexes: async (database, commits, report) => {
      indexLag = new IndexLag(commits, () => read().indexLagMs, report)
      await indexLag.replay(database)
      return indexLag
    },
    control: faultRoutes(faults),
  }
  return { ...faults, hooks }
}

const throttlingError = dynamoError(
  'ProvisionedThroughputExceededException',
  'The level of configured provisioned throughput for the table was exceeded. ' +
    'Consider increasing your provisioning level with the UpdateTable API.',
)

function conflictIn({ TransactItems: members }: Input, random: () => number) {
  const message = 'Transaction is ongoing for the item'
  if (!Array.isArray(members)) return dynamoError('TransactionConflictException', message)
  const rejectedIndex = Math.floor(random() * members.length)
  const conflict = { Code: 'TransactionConflict', Message: message }
  return transactionCanceledError(
    members.map((_member, position) => (position === rejectedIndex ? conflict : { Code: 'None' })),
  )
}

async function runWithoutSome(input: Input, run: (input: Input) => Promise<Input>, skips: () => boolean) {
  const isProcessed = new Set(entriesOf(input['RequestItems']).filter((_entry, index) => index === 0 || !skips()))
  const part = (isPart: (entry: unknown) => boolean) => {
    const tables = Object.entries<any>(input['RequestItems']).map(([table, request]) => [
      table,
      Array.isArray(request) ? request.filter(isPart) : { ...request, Keys: request.Keys.filter(isPart) },
    ])
    return Object.fromEntries(tables.filter(([, request]) => entriesOf({ request }).length > 0))
  }
  if (isProcessed.size === entriesOf(input['RequestItems']).length) return run(input)
  const response = await run({ ...input, RequestItems: part((entry) => isProcessed.has(entry)) })
  const member = 'UnprocessedKeys' in response ? 'UnprocessedKeys' : 'UnprocessedItems'
  return { ...response, [member]: { ...response[member], ...part((entry) => !isProcessed.has(entry)) } }
}

const entriesOf = (requestItems: Record<string, any> = {}): unknown[] =>
  Object.values(requestItems).flatMap((request) => (Array.isArray(request) ? request : request.Keys))
