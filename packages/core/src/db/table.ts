import {
  BatchGetItemCommand,
  BatchWriteItemCommand,
  DynamoDBClient,
  GetItemCommand,
  QueryCommand,
  type QueryCommandInput,
  type TransactWriteItem,
  UpdateItemCommand,
  type WriteRequest,
} from '@aws-sdk/client-dynamodb'
import type { ErrorCode } from '@platform/contract/errors'
import { awsSettings, isAws, withTransport } from '../aws/sdk.ts'
import { config } from '../config.ts'
import { type PlatformError, platformError, storeContentionError } from '../error.ts'
import { jitter } from '../id.ts'
import { chunk, forEachLimit } from '../lib/async.ts'
import {
  type Change,
  type Condition,
  conditionInput,
  decode,
  encode,
  optionalConditionInput,
  updateInput,
} from './expression.ts'
import type { IndexName, Key } from './keys.ts'
import { tableIndexes } from './schema.ts'

/** Each of four attempts takes two seconds at most, so a call takes about ten seconds at most. */
export const client: DynamoDBClient = withTransport(new DynamoDBClient({ maxAttempts: 4, ...awsSettings }))

const transientErrors = new Set([
  'ProvisionedThroughputExceededException',
  'ThrottlingException',
  'RequestLimitExceeded',
  'InternalServerError',
  'ServiceUnavailable',
  'TimeoutError',
  'ResourceNotFoundException',
])

// Network errors have a code such as ECONNRESET; codes of programming errors start with ERR_.
const isNetworkError = (error: Error): boolean =>
  'code' in error && typeof error.code === 'string' && /^E(?!RR_)[A-Z_]+$/.test(error.code)

const isTransient = (error: unknown): boolean =>
  error instanceof Error &&
  (transientErrors.has(error.name) || isNetworkError(error) || error.name.startsWith('AbortError'))

export async function callStore<Result>(call: Promise<Result>): Promise<Result> {
  try {
    return await call
  } catch (error) {
    // Only the store of the one-machine platform throws this error.
    if (error instanceof Error && error.name === 'StorageFullException')
      throw platformError('storage_full', { retryAfterSeconds: 10 }, { cause: error })
    if (!isTransient(error)) throw error
    throw platformError('database_unavailable', { retryAfterSeconds: 2 }, { cause: error })
  }
}

/** Most writes are built here and executed by `transact.ts`. */

export type Item = Record<string, unknown>

/** `error` is thrown if the write's condition fails. */
export interface WriteItem {
  write: TransactWriteItem
  error?: ErrorCode | PlatformError
}

const TableName = config.PLAT_TABLE
const returnOld = { ReturnValuesOnConditionCheckFailure: 'ALL_OLD' } as const

export async function get(key: Key, options: { mayBeStale?: boolean } = {}): Promise<Item | undefined> {
  const ConsistentRead = options.mayBeStale !== true
  const { Item } = await callStore(client.send(new GetItemCommand({ TableName, Key: encode(key), ConsistentRead })))
  return Item && decode(Item)
}

/** Reads at most 100 items. Returns them in the order of the keys, and undefined for each missing one. */
export async function getConsistent(
  keys: readonly Key[],
  options: { mayBeStale?: boolean } = {},
): Promise<(Item | undefined)[]> {
  const items = new Map<string, Item>()
  // `keys` may be index items with more attributes. The store rejects repeated keys.
  let pending = [...new Map(keys.map(({ pk, sk }) => [keyText({ pk, sk }), encode({ pk, sk })])).values()]
  for (let attempt = 0; pending.length > 0; attempt++) {
    if (attempt > 4) throw platformError('database_unavailable', { retryAfterSeconds: 2 })
    if (attempt > 0) await backOff(attempt)
    const request = { RequestItems: { [TableName]: { Keys: pending, ConsistentRead: options.mayBeStale !== true } } }
    const response = await callStore(client.send(new BatchGetItemCommand(request)))
    for (const item of (response.Responses?.[TableName] ?? []).map(decode)) items.set(keyText(item), item)
    pending = response.UnprocessedKeys?.[TableName]?.Keys ?? []
  }
  return keys.map((key) => items.get(keyText(key)))
}

/** Reads any number of items, as `getConsistent` does. */
export async function getMany(
  keys: readonly Key[],
  options: { mayBeStale?: boolean } = {},
): Promise<(Item | undefined)[]> {
  return (await Promise.all(chunk(keys, 100).map((keysOfCall) => getConsistent(keysOfCall, options)))).flat()
}

const keyText = ({ pk, sk }: Partial<Record<keyof Key, unknown>>): string => JSON.stringify([pk, sk])

/** `from` and `to` are inclusive; `after` continues a previous page. */
export interface Range {
  index?: IndexName
  pk: string
  from?: string
  to?: string
  limit?: number
  isNewestFirst?: boolean
  mayBeStale?: boolean
  after?: Item
  /** The store reads all items of the range but returns only those that match. `attribute` cannot be part of a key. */
  filter?: { attribute: string; contains: string }
}

interface QueryResult {
  items: Item[]
  /** The number of items before the filter. */
  readCount: number
  next: Item | undefined
}

/** Reads at most 1 MB; `next` continues the range. */
export async function query(range: Range): Promise<QueryResult> {
  if (isEmpty(range)) return { items: [], readCount: 0, next: undefined }
  const {
    Items = [],
    ScannedCount = 0,
    LastEvaluatedKey,
  } = await callStore(client.send(new QueryCommand(queryInput(range))))
  return { items: Items.map(decode), readCount: ScannedCount, next: LastEvaluatedKey && decode(LastEvaluatedKey) }
}

/** Reads at most `limit` items of the range. */
export async function readAll(
  range: Omit<Range, 'limit' | 'after'>,
  limit = Infinity,
): Promise<Omit<QueryResult, 'next'>> {
  const items: Item[] = []
  let readCount = 0
  let after: Item | undefined
  do {
    const limitField = limit === Infinity ? {} : { limit: limit - readCount }
    const page = await query({ ...range, ...limitField, ...(after && { after }) })
    items.push(...page.items)
    readCount += page.readCount
    after = page.next
  } while (after !== undefined && readCount < limit)
  return { items, readCount }
}

export const queryAll = async (range: Omit<Range, 'limit' | 'after'>, limit = Infinity): Promise<Item[]> =>
  (await readAll(range, limit)).items

export async function count(range: Range): Promise<number> {
  if (isEmpty(range)) return 0
  const request = { ...queryInput(range), Select: 'COUNT' as const }
  let total = 0
  let { ExclusiveStartKey } = request
  do {
    const response = await callStore(client.send(new QueryCommand({ ...request, ExclusiveStartKey })))
    total += response.Count ?? 0
    ExclusiveStartKey = response.LastEvaluatedKey
  } while (ExclusiveStartKey !== undefined)
  return total
}

/** The store rejects a range that ends before it begins. */
const isEmpty = ({ from, to }: Range): boolean => from !== undefined && to !== undefined && from > to

function queryInput(range: Range): QueryCommandInput {
  const [pk, sk] = range.index === undefined ? ['pk', 'sk'] : tableIndexes[range.index]
  const bounds = {
    ...(range.from === undefined ? {} : { ':from': range.from }),
    ...(range.to === undefined ? {} : { ':to': range.to }),
  }
  const filter = range.filter && {
    condition: {
      FilterExpression: 'contains(#filtered, :part)',
      ExpressionAttributeNames: { '#filtered': range.filter.attribute },
    },
    values: { ':part': range.filter.contains },
  }
  return {
    TableName,
    IndexName: range.index,
    KeyConditionExpression: `${pk} = :pk${boundsCondition(sk, range)}`,
    ...filter?.condition,
    ExpressionAttributeValues: encode({ ':pk': range.pk, ...bounds, ...filter?.values }),
    Limit: range.limit,
    ScanIndexForward: range.isNewestFirst !== true,
    ConsistentRead: range.index === undefined && range.mayBeStale !== true,
    ExclusiveStartKey: range.after && encode(range.after),
  }
}

function boundsCondition(sk: string, { from, to }: Range): string {
  if (from !== undefined && to !== undefined) return ` AND ${sk} BETWEEN :from AND :to`
  if (from !== undefined) return ` AND ${sk} >= :from`
  return to === undefined ? '' : ` AND ${sk} <= :to`
}

/** Only for changes that may be applied twice, because the SDK retries after a lost response. */
export async function update(key: Key, change: Change, condition: Condition = {}): Promise<Item> {
  const request = { TableName, Key: encode(key), ...updateInput(change, condition), ReturnValues: 'ALL_NEW' as const }
  for (let attempt = 1; ; attempt++) {
    try {
      return decode((await callStore(client.send(new UpdateItemCommand(request)))).Attributes ?? {})
    } catch (error) {
      // The SDK does not retry collisions with a transaction.
      if (!isAws(error, 'TransactionConflictException')) throw error
      if (attempt === 10) throw storeContentionError()
      await backOff(attempt)
    }
  }
}

/**
 * Returns undefined if the condition fails. A retry after a lost response may fail because the first attempt succeeded,
 * so the caller must recognise its own write.
 */
export async function tryUpdate(key: Key, change: Change, condition: Condition): Promise<Item | undefined> {
  try {
    return await update(key, change, condition)
  } catch (error) {
    if (isAws(error, 'ConditionalCheckFailedException')) return undefined
    throw error
  }
}

export const create = (key: Key, item: Item): WriteItem => replace(key, item, { pk: { absent: true } })
export const replace = (key: Key, item: Item, condition: Condition = {}): WriteItem => ({
  write: { Put: { TableName, Item: encode({ ...key, ...item }), ...optionalConditionInput(condition), ...returnOld } },
})
export const patch = (key: Key, change: Change, condition: Condition = {}): WriteItem =>
  upsert(key, change, { pk: { present: true }, ...condition })
export const upsert = (key: Key, change: Change, condition: Condition = {}): WriteItem => ({
  write: { Update: { TableName, Key: encode(key), ...updateInput(change, condition), ...returnOld } },
})
export const remove = (key: Key, condition: Condition = {}): WriteItem => ({
  write: { Delete: { TableName, Key: encode(key), ...optionalConditionInput(condition), ...returnOld } },
})
export const check = (key: Key, condition: Condition): WriteItem => ({
  write: { ConditionCheck: { TableName, Key: encode(key), ...conditionInput(condition), ...returnOld } },
})

export const orThrow = (write: WriteItem, error: ErrorCode | PlatformError): WriteItem => ({ ...write, error })

/** Stores the items without conditions and in any order. A repeat has the same result. */
export const batchPut = (items: readonly Item[]): Promise<void> =>
  batchWrite(items.map((item) => ({ PutRequest: { Item: encode(item) } })))

/** Costs half as much as removals in a transaction. */
export const batchRemove = (keys: readonly Key[]): Promise<void> =>
  batchWrite(keys.map(({ pk, sk }) => ({ DeleteRequest: { Key: encode({ pk, sk }) } })))

/** With more calls at a time, the last ones could reach the time limit on a busy machine. */
const maxConcurrentBatchWrites = 10

async function batchWrite(requests: WriteRequest[]): Promise<void> {
  let pendingRequests = requests
  for (let attempt = 0; pendingRequests.length > 0; attempt++) {
    if (attempt > 6) throw platformError('database_unavailable', { retryAfterSeconds: 2 })
    if (attempt > 0) await backOff(attempt)
    const unprocessedRequests: WriteRequest[] = []
    await forEachLimit(maxConcurrentBatchWrites, chunk(pendingRequests, 25), async (requestsOfCall) => {
      unprocessedRequests.push(...(await writeChunk(requestsOfCall)))
    })
    pendingRequests = unprocessedRequests
  }
}

async function writeChunk(requests: WriteRequest[]): Promise<WriteRequest[]> {
  const response = await callStore(client.send(new BatchWriteItemCommand({ RequestItems: { [TableName]: requests } })))
  return response.UnprocessedItems?.[TableName] ?? []
}

/** Waits for a random time: at most 20 ms for attempt 1. The maximum doubles with each attempt, up to 640 ms. */
export const backOff = (attempt: number): Promise<void> =>
  new Promise((resolve) => {
    setTimeout(resolve, jitter() * 10 * 2 ** Math.min(attempt, 6))
  })
