import { type OperationHandler, type OperationHandlers } from '@platform/core/operations/run'
import { type ModuleRuntime } from '../runtimes/port.ts'
import { classifyModuleError } from './errors.ts'
import { install } from './install.ts'
import { moduleRuntime } from './runtime.ts'
import { undoInstall } from './compensate.ts'
import { forceUninstall, uninstall } from './uninstall.ts'

/** Where modules run. Tests bring their own. */
export type RuntimeFactory = () => Promise<ModuleRuntime>

/** How operations on modules are done. */
export function moduleHandlers(pick: RuntimeFactory = moduleRuntime): OperationHandlers {
  const kind = (work: typeof install, giveUp: typeof undoInstall): OperationHandler => ({
    work: async (journal) => work(journal, await pick()),
    giveUp: async (journal, reason) => giveUp(journal, await pick(), reason),
    judge: classifyModuleError,
  })
  return { ModuleInstall: kind(install, undoInstall), ModuleUninstall: kind(uninstall, forceUninstall) }
}
