import { type OperationHandler, type OperationHandlers } from '@platform/core/operations/run'
import { type ModuleRuntime } from '../runtimes/port.ts'
import { judge } from './errors.ts'
import { install } from './install.ts'
import { moduleRuntime } from './runtime.ts'
import { undoInstall } from './compensate.ts'
import { forceUninstall, uninstall } from './uninstall.ts'

/** Where modules run. Tests bring their own. */
export type PickRuntime = () => Promise<ModuleRuntime>

/** How operations on modules are done. */
export function moduleKinds(pick: PickRuntime = moduleRuntime): OperationHandlers {
  const kind = (work: typeof install, giveUp: typeof undoInstall): OperationHandler => ({
    work: async (journal) => work(journal, await pick()),
    giveUp: async (journal, reason) => giveUp(journal, await pick(), reason),
    judge,
  })
  return { ModuleInstall: kind(install, undoInstall), ModuleUninstall: kind(uninstall, forceUninstall) }
}
