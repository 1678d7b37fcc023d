import { randomUUID } from 'node:crypto'
import { TransactionCanceledException } from '@aws-sdk/client-dynamodb'
import { TransactWriteCommand } from '@aws-sdk/lib-dynamodb'
import { unmarshall } from '@aws-sdk/util-dynamodb'
import { storeContention, platformError } from '../error.ts'
import { client, callStore, type Item, backOff, type WriteItem, query, type Range, remove } from './table.ts'

/** `item` is the existing item, if any. */
export interface ConditionFailure {
  index: number
  item: Item | undefined
}

/**
 * Executes all writes or none, exactly once: the SDK retries a lost response with the same token. Retries collisions
 * with other writers, unless `isTentative`: a collision then counts as a failure of the first condition. Returns the
 * first failed condition, or throws its error code.
 */
export async function transact(
  writes: readonly WriteItem[],
  { isTentative = false } = {},
): Promise<ConditionFailure | undefined> {
  let token = randomUUID()
  for (let attempt = 1; ; attempt++) {
    const outcome = await callStore(send(writes, token))
    if (outcome !== 'collided' && outcome !== 'collided when repeated') return failureOrThrow(writes, outcome)
    if (isTentative && outcome === 'collided') return { index: 0, item: undefined }
    if (attempt === 6) throw storeContention()
    // A repeated request keeps its token, because its first attempt may have succeeded without a response; with a new
    // token, its conditions would then fail.
    if (outcome === 'collided') token = randomUUID()
    await backOff(attempt)
  }
}

function failureOrThrow(
  writes: readonly WriteItem[],
  failure: ConditionFailure | undefined,
): ConditionFailure | undefined {
  const code = failure && writes[failure.index]?.errorCode
  if (code !== undefined) throw platformError(code)
  return failure
}

async function send(
  writes: readonly WriteItem[],
  ClientRequestToken: string,
): Promise<ConditionFailure | undefined | 'collided' | 'collided when repeated'> {
  try {
    const TransactItems = writes.map(({ write }) => write)
    await client.send(new TransactWriteCommand({ TransactItems, ClientRequestToken }))
    return undefined
  } catch (error) {
    if (!(error instanceof TransactionCanceledException)) throw error
    const reasons = error.CancellationReasons ?? []
    const index = reasons.findIndex((reason) => reason.Code === 'ConditionalCheckFailed')
    const item = reasons[index]?.Item
    if (index >= 0) return { index, item: item && unmarshall(item) }
    if (!reasons.some((reason) => collisions.has(reason.Code ?? ''))) throw error
    return (error.$metadata.attempts ?? 1) > 1 ? 'collided when repeated' : 'collided'
  }
}

const collisions = new Set(['TransactionConflict', 'ThrottlingError', 'ProvisionedThroughputExceeded'])

/** Removes the last items first, because they depend on the first one. After an interruption, call it again. */
export async function removeAll(range: Pick<Range, 'pk' | 'from' | 'to'>): Promise<void> {
  let after: Item | undefined
  do {
    const page = await query({ ...range, limit: 50, newestFirst: true, ...(after && { after }) })
    const keys = page.items.map((item) => ({ pk: String(item['pk']), sk: String(item['sk']) }))
    if (keys.length > 0) await transact(keys.map((key) => remove(key)))
    after = page.next
  } while (after !== undefined)
}
