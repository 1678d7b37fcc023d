import { ConditionalCheckFailedException, TransactionConflictException } from '@aws-sdk/client-dynamodb'
import { type ErrorCode } from '@platform/contract/errors'
import {
  BatchGetCommand,
  BatchWriteCommand,
  GetCommand,
  QueryCommand,
  type QueryCommandInput,
  type TransactWriteCommandInput,
  UpdateCommand,
} from '@aws-sdk/lib-dynamodb'
import { config } from '../config.ts'
import { storeContention, platformError } from '../error.ts'
import { jitter } from '../id.ts'
import { chunk } from '../lib/async.ts'
import { client, callStore } from './client.ts'
import { type Change, type Condition, conditional, required, updating } from './expression.ts'
import { type IndexName, type Key } from './keys.ts'
import { tableIndexes } from './schema.ts'

/** With its neighbours in this folder the only code that speaks DynamoDB. Steps are made here, and taken by `transact.ts`. */

export type Item = Record<string, unknown>

/** One write of a transaction, and the code that a caller hears when its condition does not hold. */
export interface WriteItem {
  write: NonNullable<TransactWriteCommandInput['TransactItems']>[number]
  refusal?: ErrorCode
}

const TableName = config.PLAT_TABLE
const returnOld = { ReturnValuesOnConditionCheckFailure: 'ALL_OLD' } as const

/** One item by its key, as it stands now. One call. */
export async function get(key: Key, options: { stale?: boolean } = {}): Promise<Item | undefined> {
  const ConsistentRead = options.stale !== true
  const answer = await callStore(client.send(new GetCommand({ TableName, Key: { ...key }, ConsistentRead })))
  return answer.Item
}

/** Up to 100 items in the order of their keys, as they stand now. One call, unless the store leaves some out. */
export async function getConsistent(
  keys: readonly Key[],
  options: { stale?: boolean } = {},
): Promise<(Item | undefined)[]> {
  const found = new Map<string, Item>()
  // What an index tells of an item holds more than its key.
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

/** Any number of items in the order of their keys. One call per 100, all at once. */
export async function getMany(keys: readonly Key[]): Promise<(Item | undefined)[]> {
  return (await Promise.all(chunk(keys, 100).map((part) => getConsistent(part)))).flat()
}

const name = ({ pk, sk }: Partial<Record<keyof Key, unknown>>): string => JSON.stringify([pk, sk])

/** A range of one partition. `from` and `to` are inclusive; `after` continues behind a key that a query returned. */
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

/** How many items a range holds; none of them is transferred. One call per 1 MB. */
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
 * Changes one item without asking whether it happened before: only for changes that may happen twice. One call, unless it
 * meets a transaction.
 */
export async function update(key: Key, change: Change, condition: Condition = {}): Promise<Item> {
  const request = { TableName, Key: { ...key }, ...updating(change, condition), ReturnValues: 'ALL_NEW' as const }
  for (let attempt = 1; ; attempt++) {
    try {
      return (await callStore(client.send(new UpdateCommand(request)))).Attributes ?? {}
    } catch (error) {
      // The SDK does not try again where a transaction was under way at the item.
      if (!(error instanceof TransactionConflictException)) throw error
      if (attempt === 6) throw storeContention()
      await backOff(attempt)
    }
  }
}

/**
 * Changes one item if a condition holds; answers the item afterwards, or undefined. One call. The SDK repeats a lost answer, and then the
 * condition can fail because of the first try: the caller must be able to tell its own write.
 */
export async function tryUpdate(key: Key, change: Change, condition: Condition): Promise<Item | undefined> {
  try {
    return await update(key, change, condition)
  } catch (error) {
    if (error instanceof ConditionalCheckFailedException) return undefined
    throw error
  }
}

/** Steps of a transaction. Each says under which condition it may happen. */
export const create = (key: Key, item: Item): WriteItem => replace(key, item, { pk: { absent: true } })
export const replace = (key: Key, item: Item, condition: Condition = {}): WriteItem => ({
  write: { Put: { TableName, Item: { ...key, ...item }, ...conditional(condition), ...returnOld } },
})
/** Changes an item that exists. */
export const patch = (key: Key, change: Change, condition: Condition = {}): WriteItem =>
  upsert(key, change, { pk: { present: true }, ...condition })
/** Changes an item or makes it. */
export const upsert = (key: Key, change: Change, condition: Condition = {}): WriteItem => ({
  write: { Update: { TableName, Key: { ...key }, ...updating(change, condition), ...returnOld } },
})
export const remove = (key: Key, condition: Condition = {}): WriteItem => ({
  write: { Delete: { TableName, Key: { ...key }, ...conditional(condition), ...returnOld } },
})
/** Changes nothing; refuses the transaction where the condition does not hold. */
export const check = (key: Key, condition: Condition): WriteItem => ({
  write: { ConditionCheck: { TableName, Key: { ...key }, ...required(condition), ...returnOld } },
})

/** The step, refused to the caller with this code where its condition does not hold. */
export const orThrow = (step: WriteItem, refusal: ErrorCode): WriteItem => ({ ...step, refusal })

/** Writes items that may be written twice, in any order: each by itself, none of them conditional. One call per 25. */
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

/** Waits with full jitter before another attempt: 20 ms, 40 ms, 80 ms … 640 ms at most. */
export const backOff = (attempt: number): Promise<void> =>
  new Promise((resolve) => {
    setTimeout(resolve, jitter() * 10 * 2 ** Math.min(attempt, 6))
  })
