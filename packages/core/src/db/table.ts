import { DynamoDBClient, ConditionalCheckFailedException, TransactionConflictException } from '@aws-sdk/client-dynamodb'
import {
  DynamoDBDocumentClient,
  BatchGetCommand,
  BatchWriteCommand,
  GetCommand,
  QueryCommand,
  type QueryCommandInput,
  type TransactWriteCommandInput,
  UpdateCommand,
} from '@aws-sdk/lib-dynamodb'
import type { ErrorCode } from '@platform/contract/errors'
import { awsTimeouts } from '../aws/sdk.ts'
import { config } from '../config.ts'
import { platformError, storeContention } from '../error.ts'
import { jitter } from '../id.ts'
import { chunk } from '../lib/async.ts'
import { type Change, type Condition, conditional, required, updating } from './expression.ts'
import type { IndexName, Key } from './keys.ts'
import { tableIndexes } from './schema.ts'

/** One client per process. Timeouts are short: callers wait at most a few seconds for an unavailable store. */
export const client: DynamoDBDocumentClient = DynamoDBDocumentClient.from(
  new DynamoDBClient({ maxAttempts: 4, requestHandler: awsTimeouts }),
  { marshallOptions: { removeUndefinedValues: true } },
)

const transient = new Set([
  'ProvisionedThroughputExceededException',
  'ThrottlingException',
  'RequestLimitExceeded',
  'InternalServerError',
  'ServiceUnavailable',
  'TimeoutError',
  'ResourceNotFoundException',
  'TransactionInProgressException',
])

// Network errors have a code such as ECONNRESET, store errors a name. Programming errors are ERR_….
const isOfNetwork = (error: Error): boolean =>
  'code' in error && typeof error.code === 'string' && /^E(?!RR_)[A-Z_]+$/.test(error.code)

const isTransient = (error: unknown): boolean =>
  error instanceof Error && (transient.has(error.name) || isOfNetwork(error) || error.name.startsWith('AbortError'))

/** Converts transient errors to `database_unavailable`; other errors are passed on. */
export async function callStore<Answer>(call: Promise<Answer>): Promise<Answer> {
  try {
    return await call
  } catch (error) {
    if (!isTransient(error)) throw error
    throw platformError('database_unavailable', { retryAfterSeconds: 2 }, { cause: error })
  }
}

/** Only this folder calls DynamoDB. Writes are built here and executed by `transact.ts`. */

export type Item = Record<string, unknown>

/** One write of a transaction, with the error code for a failed condition. */
export interface WriteItem {
  write: NonNullable<TransactWriteCommandInput['TransactItems']>[number]
  errorCode?: ErrorCode
}

const TableName = config.PLAT_TABLE
const returnOld = { ReturnValuesOnConditionCheckFailure: 'ALL_OLD' } as const

/** One item, by a consistent read. One call. */
export async function get(key: Key, options: { stale?: boolean } = {}): Promise<Item | undefined> {
  const ConsistentRead = options.stale !== true
  const answer = await callStore(client.send(new GetCommand({ TableName, Key: { ...key }, ConsistentRead })))
  return answer.Item
}

/**
 * Up to 100 items in the order of their keys, by a consistent read. One call, unless the store leaves some unprocessed.
 */
export async function getConsistent(
  keys: readonly Key[],
  options: { stale?: boolean } = {},
): Promise<(Item | undefined)[]> {
  const found = new Map<string, Item>()
  // Index entries have more fields than the key.
  let pending: Item[] = keys.map(({ pk, sk }) => ({ pk, sk }))
  for (let attempt = 0; pending.length > 0; attempt++) {
    if (attempt > 4) throw platformError('database_unavailable', { retryAfterSeconds: 2 })
    if (attempt > 0) await backOff(attempt)
    const request = { RequestItems: { [TableName]: { Keys: pending, ConsistentRead: options.stale !== true } } }
    const answer = await callStore(client.send(new BatchGetCommand(request)))
    for (const item of answer.Responses?.[TableName] ?? []) found.set(name(item), item)
    pending = answer.UnprocessedKeys?.[TableName]?.Keys ?? []
  }
  return keys.map((key) => found.get(name(key)))
}

/** Any number of items in the order of their keys. One call per 100, concurrently. */
export async function getMany(keys: readonly Key[]): Promise<(Item | undefined)[]> {
  return (await Promise.all(chunk(keys, 100).map((part) => getConsistent(part)))).flat()
}

const name = ({ pk, sk }: Partial<Record<keyof Key, unknown>>): string => JSON.stringify([pk, sk])

/** A range of one partition. `from` and `to` are inclusive; `after` continues behind a returned key. */
export interface Range {
  index?: IndexName
  pk: string
  from?: string
  to?: string
  limit?: number
  newestFirst?: boolean
  stale?: boolean
  after?: Item
}

/** One page of a range: at most 1 MB. `next` continues it. */
export async function query(range: Range): Promise<{ items: Item[]; next: Item | undefined }> {
  const answer = await callStore(client.send(new QueryCommand(queryInput(range))))
  return { items: answer.Items ?? [], next: answer.LastEvaluatedKey }
}

/** A whole range, or its first `limit` items. One call per 1 MB. */
export async function queryAll(range: Omit<Range, 'limit' | 'after'>, limit = Infinity): Promise<Item[]> {
  const found: Item[] = []
  let after: Item | undefined
  do {
    const left = limit === Infinity ? {} : { limit: limit - found.length }
    const part = await query({ ...range, ...left, ...(after && { after }) })
    found.push(...part.items)
    after = part.next
  } while (after !== undefined && found.length < limit)
  return found
}

/** The number of items in a range, without transferring them. One call per 1 MB. */
export async function count(range: Range): Promise<number> {
  const request = { ...queryInput(range), Select: 'COUNT' as const }
  let found = 0
  let after = range.after
  do {
    const answer = await callStore(client.send(new QueryCommand({ ...request, ExclusiveStartKey: after })))
    found += answer.Count ?? 0
    after = answer.LastEvaluatedKey
  } while (after !== undefined)
  return found
}

function queryInput(range: Range): QueryCommandInput {
  const [pk, sk] = range.index === undefined ? ['pk', 'sk'] : tableIndexes[range.index]
  const bounds = {
    ...(range.from === undefined ? {} : { ':from': range.from }),
    ...(range.to === undefined ? {} : { ':to': range.to }),
  }
  return {
    TableName,
    IndexName: range.index,
    KeyConditionExpression: `${pk} = :pk${boundsOf(sk, range)}`,
    ExpressionAttributeValues: { ':pk': range.pk, ...bounds },
    Limit: range.limit,
    ScanIndexForward: range.newestFirst !== true,
    ConsistentRead: range.index === undefined && range.stale !== true,
    ExclusiveStartKey: range.after,
  }
}

function boundsOf(sk: string, { from, to }: Range): string {
  if (from !== undefined && to !== undefined) return ` AND ${sk} BETWEEN :from AND :to`
  if (from !== undefined) return ` AND ${sk} >= :from`
  return to === undefined ? '' : ` AND ${sk} <= :to`
}

/**
 * Changes one item. Only for changes that may be applied twice, because a lost response is retried. One call, unless it
 * collides with a transaction.
 */
export async function update(key: Key, change: Change, condition: Condition = {}): Promise<Item> {
  const request = { TableName, Key: { ...key }, ...updating(change, condition), ReturnValues: 'ALL_NEW' as const }
  for (let attempt = 1; ; attempt++) {
    try {
      return (await callStore(client.send(new UpdateCommand(request)))).Attributes ?? {}
    } catch (error) {
      // The SDK does not retry collisions with a transaction.
      if (!(error instanceof TransactionConflictException)) throw error
      if (attempt === 6) throw storeContention()
      await backOff(attempt)
    }
  }
}

/**
 * Changes one item if a condition holds; returns the new item or undefined. One call. The SDK retries a lost response,
 * so the condition may fail because of the first attempt: the caller must recognise its own write.
 */
export async function tryUpdate(key: Key, change: Change, condition: Condition): Promise<Item | undefined> {
  try {
    return await update(key, change, condition)
  } catch (error) {
    if (error instanceof ConditionalCheckFailedException) return undefined
    throw error
  }
}

/** Writes of a transaction, each with its condition. */
export const create = (key: Key, item: Item): WriteItem => replace(key, item, { pk: { absent: true } })
export const replace = (key: Key, item: Item, condition: Condition = {}): WriteItem => ({
  write: { Put: { TableName, Item: { ...key, ...item }, ...conditional(condition), ...returnOld } },
})
/** Changes an existing item. */
export const patch = (key: Key, change: Change, condition: Condition = {}): WriteItem =>
  upsert(key, change, { pk: { present: true }, ...condition })
/** Changes or creates an item. */
export const upsert = (key: Key, change: Change, condition: Condition = {}): WriteItem => ({
  write: { Update: { TableName, Key: { ...key }, ...updating(change, condition), ...returnOld } },
})
export const remove = (key: Key, condition: Condition = {}): WriteItem => ({
  write: { Delete: { TableName, Key: { ...key }, ...conditional(condition), ...returnOld } },
})
/** Fails the transaction if the condition does not hold. */
export const check = (key: Key, condition: Condition): WriteItem => ({
  write: { ConditionCheck: { TableName, Key: { ...key }, ...required(condition), ...returnOld } },
})

/** The write, with an error code for a failed condition. */
export const orThrow = (write: WriteItem, errorCode: ErrorCode): WriteItem => ({ ...write, errorCode })

/** Unconditional writes in any order that may be repeated. One call per 25. */
export async function batchPut(items: readonly Item[]): Promise<void> {
  let pending = items.map((Item) => ({ PutRequest: { Item } }))
  for (let attempt = 0; pending.length > 0; attempt++) {
    if (attempt > 6) throw storeContention()
    if (attempt > 0) await backOff(attempt)
    const left = await Promise.all(chunk(pending, 25).map(writePart))
    pending = left.flat()
  }
}

type PutRequests = { PutRequest: { Item: Item } }[]

async function writePart(part: PutRequests): Promise<PutRequests> {
  const answer = await callStore(client.send(new BatchWriteCommand({ RequestItems: { [TableName]: part } })))
  const left = answer.UnprocessedItems?.[TableName] ?? []
  return left.map(({ PutRequest }) => ({ PutRequest: { Item: PutRequest?.Item ?? {} } }))
}

/** Waits with full jitter before another attempt: 20 ms, doubling up to 640 ms. */
export const backOff = (attempt: number): Promise<void> =>
  new Promise((resolve) => {
    setTimeout(resolve, jitter() * 10 * 2 ** Math.min(attempt, 6))
  })
