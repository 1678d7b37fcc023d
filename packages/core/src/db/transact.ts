import { randomUUID } from 'node:crypto'
import { TransactionCanceledException } from '@aws-sdk/client-dynamodb'
import { TransactWriteCommand } from '@aws-sdk/lib-dynamodb'
import { unmarshall } from '@aws-sdk/util-dynamodb'
import { storeContention, platformError } from '../error.ts'
import { client, callStore } from './client.ts'
import { type Item, backOff, type WriteItem } from './table.ts'

/** Which step of a transaction was refused, and the item that refused it (undefined: there was none). */
export interface ConditionFailure {
  step: number
  item: Item | undefined
}

/**
 * All steps or none, once: the SDK repeats a lost answer with the same token. Answers the first step whose condition
 * failed, or throws its code where it has one; undefined when all happened. Collisions with other writers are retried.
 * One call without collisions.
 */
export async function transact(steps: readonly WriteItem[]): Promise<ConditionFailure | undefined> {
  let token = randomUUID()
  for (let attempt = 1; ; attempt++) {
    const outcome = await callStore(send(steps, token))
    if (outcome !== 'collided' && outcome !== 'collided when repeated') return told(steps, outcome)
    if (attempt === 6) throw storeContention()
    // The answer that was lost may have been that it is done: under another token it would be refused now.
    if (outcome === 'collided') token = randomUUID()
    await backOff(attempt)
  }
}

function told(steps: readonly WriteItem[], refusal: ConditionFailure | undefined): ConditionFailure | undefined {
  const code = refusal && steps[refusal.step]?.refusal
  if (code !== undefined) throw platformError(code)
  return refusal
}

async function send(
  steps: readonly WriteItem[],
  ClientRequestToken: string,
): Promise<ConditionFailure | undefined | 'collided' | 'collided when repeated'> {
  try {
    const TransactItems = steps.map(({ write }) => write)
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
