import { randomUUID } from 'node:crypto'
import { type TransactionCanceledException, TransactWriteItemsCommand } from '@aws-sdk/client-dynamodb'
import { isAws } from '../aws/sdk.ts'
import { type PlatformError, platformError, storeContentionError } from '../error.ts'
import { decode } from './expression.ts'
import { client, callStore, type Item, backOff, type WriteItem, query, type Range, remove } from './table.ts'

/** `item` is the existing item, if any. */
export interface ConditionFailure {
  index: number
  item: Item | undefined
}

/** Together, the pauses between the attempts take at most 3.2 seconds. */
const maxAttempts = 10

/**
 * Executes all writes or none, and no write twice: after a lost response, the SDK retries with the same token. Retries
 * after throttling and after collisions with other writers. With `isTentative`, a collision instead counts as a failure
 * of the first condition. Returns the first failed condition, or throws the error of its write.
 */
export async function transact(
  writes: readonly WriteItem[],
  { isTentative = false } = {},
): Promise<ConditionFailure | undefined> {
  let token = randomUUID()
  for (let attempt = 1; ; attempt++) {
    const outcome = await callStore(send(writes, token))
    if (typeof outcome !== 'string') return failureOrThrow(writes, outcome)
    if (isTentative && outcome === 'collided') return { index: 0, item: undefined }
    if (attempt === maxAttempts) throw failureAfter(outcome)
    // A repeated request keeps its token, because its first attempt may have succeeded without a response; with a new
    // token, its conditions would then fail.
    if (outcome !== 'collided when repeated') token = randomUUID()
    await backOff(attempt)
  }
}

/** A repeated request may have succeeded, so the error is not a conflict, whose message says that nothing changed. */
const failureAfter = (outcome: Collision): PlatformError =>
  outcome === 'collided' ? storeContentionError() : platformError('database_unavailable', { retryAfterSeconds: 2 })

function failureOrThrow(
  writes: readonly WriteItem[],
  failure: ConditionFailure | undefined,
): ConditionFailure | undefined {
  const error = failure && writes[failure.index]?.error
  if (error !== undefined) throw typeof error === 'string' ? platformError(error) : error
  return failure
}

type Collision = 'collided' | 'collided when repeated' | 'throttled'

async function send(
  writes: readonly WriteItem[],
  ClientRequestToken: string,
): Promise<ConditionFailure | undefined | Collision> {
  try {
    const TransactItems = writes.map(({ write }) => write)
    await client.send(new TransactWriteItemsCommand({ TransactItems, ClientRequestToken }))
    return undefined
  } catch (error) {
    // An earlier attempt of the same request is still running.
    if (isAws(error, 'TransactionInProgressException')) return 'collided when repeated'
    if (!isCancelled(error)) throw error
    const reasons = error.CancellationReasons ?? []
    const index = reasons.findIndex((reason) => reason.Code === 'ConditionalCheckFailed')
    const item = reasons[index]?.Item
    if (index >= 0) return { index, item: item && decode(item) }
    const hasAny = (codes: readonly string[]) => reasons.some(({ Code = '' }) => codes.includes(Code))
    if (!hasAny(['TransactionConflict', ...throttledCodes])) throw error
    if ((error.$metadata.attempts ?? 1) > 1) return 'collided when repeated'
    return hasAny(throttledCodes) ? 'throttled' : 'collided'
  }
}

const isCancelled = (error: unknown): error is TransactionCanceledException =>
  isAws(error, 'TransactionCanceledException')

const throttledCodes = ['ThrottlingError', 'ProvisionedThroughputExceeded']

/** Removes the items of a range in transactions of at most 50 items, the last items first. */
export async function removeAll(range: Pick<Range, 'pk' | 'from' | 'to'>): Promise<void> {
  let after: Item | undefined
  do {
    const page = await query({ ...range, limit: 50, isNewestFirst: true, ...(after && { after }) })
    const keys = page.items.map((item) => ({ pk: String(item['pk']), sk: String(item['sk']) }))
    if (keys.length > 0) await transact(keys.map((key) => remove(key)))
    after = page.next
  } while (after !== undefined)
}
