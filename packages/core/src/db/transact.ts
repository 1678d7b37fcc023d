import { randomUUID } from 'node:crypto'
import { TransactionCanceledException } from '@aws-sdk/client-dynamodb'
import { TransactWriteCommand } from '@aws-sdk/lib-dynamodb'
import { unmarshall } from '@aws-sdk/util-dynamodb'
import { storeContention, platformError } from '../error.ts'
import { client, callStore, type Item, backOff, type WriteItem, query, type Range, remove } from './table.ts'

/** The first write of a transaction with a failed condition: its index and the existing item, if any. */
export interface ConditionFailure {
  index: number
  item: Item | undefined
}

/**
 * Executes all writes or none, exactly once: the SDK retries a lost response with the same token. Returns the first
 * failed condition, or throws its error code; undefined on success. Retries collisions with other writers.
 * One call without collisions.
 */
export async function transact(writes: readonly WriteItem[]): Promise<ConditionFailure | undefined> {
  let token = randomUUID()
  for (let attempt = 1; ; attempt++) {
    const outcome = await callStore(send(writes, token))
    if (outcome !== 'collided' && outcome !== 'collided when repeated') return failureOrThrow(writes, outcome)
    if (attempt === 6) throw storeContention()
    // The first attempt may have succeeded without a response: with another token the conditions would fail now.
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

/** Removes a range, last items first, because they depend on the first. After an interruption, call it again. */
export async function removeAll(range: Pick<Range, 'pk' | 'from' | 'to'>): Promise<void> {
  let after: Item | undefined
  do {
    const page = await query({ ...range, limit: 50, newestFirst: true, ...(after && { after }) })
    const keys = page.items.map((item) => ({ pk: String(item['pk']), sk: String(item['sk']) }))
    if (keys.length > 0) await transact(keys.map((key) => remove(key)))
    after = page.next
  } while (after !== undefined)
}
