import { system } from '@platform/core/caller'
import { commit } from '@platform/core/outbox/commit'
import { type WriteItem } from '@platform/core/db/table'
import { type InstallState } from '@platform/core/modules/install-state'
import { finishChange, type OperationEnd, LeaseLost } from '@platform/core/operations/operation'
import { type Effects } from '@platform/core/outbox/record'
import { retryOnConflictFor } from './retry-on-conflict.ts'
import { type OperationLease } from '@platform/core/operations/lease'
import { currentInstallState } from './records.ts'

/** What the end of an operation makes of its module. */
export interface FinishChange {
  steps: readonly WriteItem[]
  events: NonNullable<Effects['events']>
}

/**
 * Ends an operation together with the change that it was for: one transaction. Looks again where the claims of paths have
 * changed meanwhile. Answers what was there before. Throws `OperationLost`. Two calls and a message.
 */
export async function finishWith(
  { operation }: OperationLease,
  end: OperationEnd,
  moduleId: string,
  outcomeOf: (standing: InstallState) => FinishChange,
): Promise<InstallState> {
  let before: InstallState | undefined
  const refusal = await retryOnConflictFor(async () => {
    const standing = await currentInstallState(moduleId)
    before = standing
    const { steps, events } = outcomeOf(standing)
    const ended = finishChange(operation, end)
    return commit(system(operation.organisationId), {
      steps: [...ended.steps, ...steps],
      events: [...events, ...ended.events],
      moves: ended.moves,
    })
  })
  if (refusal || before === undefined) throw new LeaseLost(operation.id)
  return before
}
