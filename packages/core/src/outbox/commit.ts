import { type Actor } from '../caller.ts'
import { type Step } from '../db/table.ts'
import { type Refusal, transact } from '../db/transact.ts'
import { failpoint } from '../lib/failpoint.ts'
import { announceRecords } from '../aws/queues.ts'
import { recordStep, type Told } from './record.ts'

/** A change of state: the writes that make it, what it tells, and what the caller will be answered. */
export interface Change extends Told {
  steps: readonly Step[]
  /** Kept with the change where the request may be repeated (D28); `undefined` for an answer without a body. */
  answer?: unknown
  /** Something else leads to the books: a message that is sent anyway. */
  isAnnounced?: true
}

/**
 * Makes a change of state, once: one transaction holds the change, its record in the outbox, and the answer to a repeat.
 * Answers the first step that was refused, or throws its code where it has one. One call and one message.
 */
export async function commit(actor: Actor, change: Change): Promise<Refusal | undefined> {
  const { steps, answer, isAnnounced, ...told } = change
  const isTold = told.audit !== undefined || told.events !== undefined || told.moves !== undefined
  const once = actor.kind === 'user' && 'answer' in change ? actor.once : undefined
  const refusal = await transact([
    ...steps,
    ...(isTold ? [recordStep(actor, told)] : []),
    ...(once ? [once.step(answer)] : []),
  ])
  if (refusal !== undefined) return refusal
  once?.happened()
  if (!isTold) return undefined
  await failpoint('change.written')
  if (isAnnounced !== true) await announceRecords(actor.organisationId)
  return undefined
}
