import { randomUUID } from 'node:crypto'
import { TransactionCanceledException } from '@aws-sdk/client-dynamodb'
import { TransactWriteCommand } from '@aws-sdk/lib-dynamodb'
import { unmarshall } from '@aws-sdk/util-dynamodb'
import { storeContention, platformError } from '../error.ts'
import { client, callStore, type Item, backOff, type WriteItem, query, type Range, remove } from './table.ts'

/** The failed write of a transaction, and its existing item (undefined if there is none). */
export interface ConditionFailure {
  step: number
  item: Item | undefined
}

/**
 * Executes all writes or none, exactly once: the SDK retries a lost response with the same token. Returns the first
 * write with a failed condition, or throws its error code; undefined on success. Retries collisions with other writers.
 * One call without collisions.
 */
export async function transact(writes: readonly WriteItem[]): Promise<ConditionFailure | undefined> {
  let token = randomUUID()
  for (let attempt = 1; ; attempt++) {
    const outcome = await callStore(send(writes, token))
    if (outcome !== 'collided' && outcome !== 'collided when repeated') return told(writes, outcome)
    if (attempt === 6) throw storeContention()
    // The lost response may have been a success: with another token its conditions would fail now.
    if (outcome === 'collided') token = randomUUID()
    await backOff(attempt)
  }
}

function told(writes: readonly WriteItem[], refusal: ConditionFailure | undefined): ConditionFailure | undefined {
  const code = refusal && writes[refusal.step]?.refusal
  if (code !== undefined) throw platformError(code)
  return refusal
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
    const step = reasons.findIndex((reason) => reason.Code === 'ConditionalCheckFailed')
    const item = reasons[step]?.Item
    if (step >= 0) return { step, item: item && unmarshall(item) }
    if (!reasons.some((reason) => collisions.has(reason.Code ?? ''))) throw error
    return (error.$metadata.attempts ?? 1) > 1 ? 'collided when repeated' : 'collided'
  }
}

const collisions = new Set(['TransactionConflict', 'ThrottlingError', 'ProvisionedThroughputExceeded'])

/** Removes a range, last items first, because others depend on the first. Interrupted, the next call continues. */
export async function removeAll(range: Pick<Range, 'pk' | 'from' | 'to'>): Promise<void> {
  let after: Item | undefined
  do {
    const part = await query({ ...range, limit: 50, newestFirst: true, ...(after && { after }) })
    const keys = part.items.map((item) => ({ pk: String(item['pk']), sk: String(item['sk']) }))
    if (keys.length > 0) await transact(keys.map((key) => remove(key)))
    after = part.next
  } while (after !== undefined)
}
