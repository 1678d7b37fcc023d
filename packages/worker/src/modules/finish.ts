import { system } from '@platform/core/caller'
import { commit } from '@platform/core/outbox/commit'
import { retryOnConflict } from '@platform/core/db/offset-list'
import type { WriteItem } from '@platform/core/db/table'
import type { ConditionFailure } from '@platform/core/db/transact'
import type { InstallState } from '@platform/core/modules/install-state'
import { finishChange, type OperationEnd, LeaseLost } from '@platform/core/operations/operation'
import type { Effects } from '@platform/core/outbox/record'
import type { OperationLease } from '@platform/core/operations/lease'
import { currentInstallState } from './records.ts'

export interface FinishChange {
  writes: readonly WriteItem[]
  events: NonNullable<Effects['events']>
}

/**
 * Ends an operation and applies its change in one transaction. Retries if the route reservations have changed
 * concurrently. Returns the previous state. Throws `LeaseLost` if another worker has taken over the operation.
 */
export async function finishWith(
  { operation }: OperationLease,
  end: OperationEnd,
  moduleId: string,
  changeOf: (state: InstallState) => FinishChange,
): Promise<InstallState> {
  let previousState: InstallState | undefined
  const conflict = await retryOnConflictFor(async () => {
    const state = await currentInstallState(moduleId)
    previousState = state
    const { writes, events } = changeOf(state)
    const endChange = finishChange(operation, end)
    return commit(system(operation.organisationId), {
      writes: [...endChange.writes, ...writes],
      events: [...events, ...endChange.events],
      transitions: endChange.transitions,
    })
  })
  if (conflict || previousState === undefined) throw new LeaseLost(operation.id)
  return previousState
}

/**
 * Retries a change unless its first write is refused, which is final. Other writes may be refused because all modules
 * share the route reservations, which may have changed since they were read.
 */
export async function retryOnConflictFor(
  attempt: () => Promise<ConditionFailure | undefined>,
): Promise<ConditionFailure | undefined> {
  const { conflict } = await retryOnConflict(async () => {
    const conflict = await attempt()
    return conflict === undefined || conflict.index === 0 ? { conflict } : undefined
  })
  return conflict
}
