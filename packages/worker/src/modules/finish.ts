import { system } from '@platform/core/caller'
import { commit } from '@platform/core/outbox/commit'
import { type Step } from '@platform/core/db/table'
import { type Standing } from '@platform/core/modules/install-state'
import { ending, type OperationEnd, OperationLost } from '@platform/core/operations/operation'
import { type Told } from '@platform/core/outbox/record'
import { againstOthers } from './retry-on-conflict.ts'
import { type Journal } from '@platform/core/operations/lease'
import { standingNow } from './records.ts'

/** What the end of an operation makes of its module. */
export interface Outcome {
  steps: readonly Step[]
  events: NonNullable<Told['events']>
}

/**
 * Ends an operation together with the change that it was for: one transaction. Looks again where the claims of paths have
 * changed meanwhile. Answers what was there before. Throws `OperationLost`. Two calls and a message.
 */
export async function endWith(
  { operation }: Journal,
  end: OperationEnd,
  moduleId: string,
  outcomeOf: (standing: Standing) => Outcome,
): Promise<Standing> {
  let before: Standing | undefined
  const refusal = await againstOthers(async () => {
    const standing = await standingNow(moduleId)
    before = standing
    const { steps, events } = outcomeOf(standing)
    const ended = ending(operation, end)
    return commit(system(operation.organisationId), {
      steps: [...ended.steps, ...steps],
      events: [...events, ...ended.events],
      moves: ended.moves,
    })
  })
  if (refusal || before === undefined) throw new OperationLost(operation.id)
  return before
}
