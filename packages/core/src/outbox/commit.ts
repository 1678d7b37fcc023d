import { type Actor } from '../caller.ts'
import { type WriteItem } from '../db/table.ts'
import { type ConditionFailure, transact } from '../db/transact.ts'
import { failpoint } from '../lib/failpoint.ts'
import { enqueueProjections } from '../aws/queues.ts'
import { outboxWrite, type Effects } from './record.ts'

/** A change of state: the writes that make it, what it tells, and what the caller will be answered. */
export interface Change extends Effects {
  steps: readonly WriteItem[]
  /** Kept with the change where the request may be repeated (D28); `undefined` for an answer without a body. */
  answer?: unknown
  /** Something else leads to the books: a message that is sent anyway. */
  isAnnounced?: true
}

/**
 * Makes a change of state, once: one transaction holds the change, its record in the outbox, and the answer to a repeat.
 * Answers the first step that was refused, or throws its code where it has one. One call and one message.
 */
export async function commit(actor: Actor, change: Change): Promise<ConditionFailure | undefined> {
  const { steps, answer, isAnnounced, ...told } = change
  const isTold = told.audit !== undefined || told.events !== undefined || told.moves !== undefined
  const once = actor.kind === 'user' && 'answer' in change ? actor.once : undefined
  const refusal = await transact([
    ...steps,
    ...(isTold ? [outboxWrite(actor, told)] : []),
    ...(once ? [once.step(answer)] : []),
  ])
  if (refusal !== undefined) return refusal
  once?.happened()
  if (!isTold) return undefined
  await failpoint('change.written')
  if (isAnnounced !== true) await enqueueProjections(actor.organisationId)
  return undefined
}
