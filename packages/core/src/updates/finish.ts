import { system } from '../caller.ts'
import { commit } from '../outbox/commit.ts'
import * as keys from '../db/keys.ts'
import { patch, type WriteItem } from '../db/table.ts'
import { log } from '../log.ts'
import { finishChange, type OperationEnd, LeaseLost } from '../operations/operation.ts'
import { type OperationRecord } from '../operations/record.ts'
import { type Effects } from '../outbox/record.ts'
import { updatePlan } from './record.ts'

/** What the end of an update, or of the way back, makes of the platform's state. */
interface UpdateOutcome {
  /** Refused where the update holds the lock no more. */
  step: WriteItem
  events: NonNullable<Effects['events']>
}

/** Done: the release serves and what served before is the previous one. Failed: all is as it was. The lock is gone. */
function updateOutcome(operation: OperationRecord, { status, outcome }: OperationEnd): UpdateOutcome {
  const { action, release, before } = updatePlan(operation)
  const isMine = { jobId: { is: operation.id } }
  const change = { add: { revision: 1 }, remove: ['jobId'] }
  const data = { jobId: operation.id, version: release.version, previousVersion: before.version }
  const subject = operation.id
  if (status === 'Failed') {
    const message = outcome.slice(0, 1000).toWellFormed()
    return {
      step: patch(keys.updateState(), change, isMine),
      events: [{ name: 'update.failed', subject, data: { ...data, action, message } }],
    }
  }
  const set = { current: JSON.stringify(release), previous: JSON.stringify(before) }
  return {
    step: patch(keys.updateState(), { ...change, set }, isMine),
    events: [{ name: action === 'apply' ? 'update.completed' : 'update.rolled_back', subject, data }],
  }
}

/**
 * Ends an update with what it makes of the platform's state: one transaction. Throws `OperationLost` where the worker has
 * lost it. One call and a message; two where the state knows nothing of the update, as after a restore: it ends all the same.
 */
export async function finishUpdate(operation: OperationRecord, end: OperationEnd): Promise<void> {
  const ended = finishChange(operation, end)
  const { step, events } = updateOutcome(operation, end)
  const told = { events: [...events, ...ended.events], moves: ended.moves }
  const actor = system(operation.organisationId)
  const refusal = await commit(actor, { steps: [...ended.steps, step], ...told })
  if (refusal === undefined) return
  const isLost = refusal.step < ended.steps.length || (await commit(actor, { steps: ended.steps, ...told }))
  if (isLost) throw new LeaseLost(operation.id)
  log('error', 'An update has ended that held no lock', { jobId: operation.id, ...end })
}
