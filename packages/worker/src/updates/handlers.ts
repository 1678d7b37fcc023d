import { functionNames } from '@platform/core/updates/function-names'
import { type OperationLease } from '@platform/core/operations/lease'
import { type OperationHandler, type OperationHandlers } from '@platform/core/operations/run'
import { classifyUpdateError } from './errors.ts'
import { rollBack } from './roll-back.ts'
import { update } from './apply.ts'
import { updateTarget } from './target/select.ts'
import { type UpdateTarget } from './target/port.ts'

/** What the platform's functions run on, for one try of an update. Tests bring their own. */
export type TargetFactory = () => Promise<UpdateTarget>

/** How updates of the platform are done, and the way back: the same steps, some of them left out. */
export function updateHandlers(
  pick: TargetFactory = updateTarget,
  names: readonly string[] = functionNames,
): OperationHandlers {
  // What a try has seen of its target it goes by, to its end.
  const picked = new WeakMap<OperationLease, Promise<UpdateTarget>>()
  const targetOf = (journal: OperationLease): Promise<UpdateTarget> => {
    const target = picked.get(journal) ?? pick()
    picked.set(journal, target)
    return target
  }
  const kind: OperationHandler = {
    work: async (journal) => update({ journal, target: await targetOf(journal), names }),
    giveUp: async (journal, reason) => rollBack(journal, await targetOf(journal), reason),
    judge: classifyUpdateError,
  }
  return { PlatformUpdate: kind, PlatformRollback: kind }
}
