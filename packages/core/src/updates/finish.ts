import { system } from '../caller.ts'
import { commit } from '../outbox/commit.ts'
import * as keys from '../db/keys.ts'
import { patch, type WriteItem } from '../db/table.ts'
import { log } from '../log.ts'
import { finishChange, type OperationEnd, LeaseLost } from '../operations/operation.ts'
import type { OperationRecord } from '../operations/record.ts'
import type { Effects } from '../outbox/record.ts'
import { updatePlan } from './record.ts'

interface UpdateOutcome {
  /** Fails if the update no longer holds the lock. */
  write: WriteItem
  events: NonNullable<Effects['events']>
}

/**
 * A completed update makes the release active and the active one the previous; a failed one changes neither. Both
 * release the lock.
 */
function updateOutcome(operation: OperationRecord, { status, outcome }: OperationEnd): UpdateOutcome {
  const { action, release, before } = updatePlan(operation)
  const holdsLock = { jobId: { is: operation.id } }
  const change = { add: { revision: 1 }, remove: ['jobId'] }
  const data = { jobId: operation.id, version: release.version, previousVersion: before.version }
  const subject = operation.id
  if (status === 'Failed') {
    const message = outcome.slice(0, 1000).toWellFormed()
    return {
      write: patch(keys.updateState(), change, holdsLock),
      events: [{ name: 'update.failed', subject, data: { ...data, action, message } }],
    }
  }
  const set = { current: JSON.stringify(release), previous: JSON.stringify(before) }
  return {
    write: patch(keys.updateState(), { ...change, set }, holdsLock),
    events: [{ name: action === 'apply' ? 'update.completed' : 'update.rolled_back', subject, data }],
  }
}

/**
 * One transaction finishes the operation and changes the platform's state. If the update no longer holds the lock, only
 * finishes the operation. Throws `LeaseLost` if another worker has taken over the operation.
 */
export async function finishUpdate(operation: OperationRecord, end: OperationEnd): Promise<void> {
  const operationChange = finishChange(operation, end)
  const { write, events } = updateOutcome(operation, end)
  const effects = { events: [...events, ...operationChange.events], transitions: operationChange.transitions }
  const actor = system(operation.organisationId)
  const failure = await commit(actor, { writes: [...operationChange.writes, write], ...effects })
  if (failure === undefined) return
  const isLost =
    failure.index < operationChange.writes.length ||
    (await commit(actor, { writes: operationChange.writes, ...effects }))
  if (isLost) throw new LeaseLost(operation.id)
  log('error', 'Update finished without holding the lock', { jobId: operation.id, ...end })
}
