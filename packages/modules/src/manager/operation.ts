import { buryOperation, type Kind, type Kinds, performOperation } from '@platform/core/operation/work'
import { type OperationReference } from '@platform/core/queue'
import { type ModuleRuntime } from '../runtime/port.ts'
import { judge } from './failure.ts'
import { install } from './install.ts'
import { moduleRuntime } from './runtime.ts'
import { undoInstall } from './undo.ts'
import { forceUninstall, uninstall } from './uninstall.ts'

/** Where modules run. Tests bring their own. */
export type PickRuntime = () => Promise<ModuleRuntime>

/** How operations on modules are done. */
export function moduleKinds(pick: PickRuntime = moduleRuntime): Kinds {
  const kind = (work: typeof install, giveUp: typeof undoInstall): Kind => ({
    work: async (journal) => work(journal, await pick()),
    giveUp: async (journal, reason) => giveUp(journal, await pick(), reason),
    judge,
  })
  return { ModuleInstall: kind(install, undoInstall), ModuleUninstall: kind(uninstall, forceUninstall) }
}

/** Does an announced operation on a module, as `performOperation` does. */
export const perform = (reference: OperationReference, pick?: PickRuntime): Promise<void> =>
  performOperation(reference, moduleKinds(pick))

/** Gives up an operation on a module, as `buryOperation` does. */
export const bury = (reference: OperationReference, pick?: PickRuntime): Promise<void> =>
  buryOperation(reference, moduleKinds(pick))
