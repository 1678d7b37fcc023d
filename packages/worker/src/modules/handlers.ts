import { type OperationHandler, type OperationHandlers } from '@platform/core/operations/run'
import { type ModuleRuntime } from '../runtimes/port.ts'
import { classifyModuleError } from './errors.ts'
import { install } from './install.ts'
import { moduleRuntime } from './runtime.ts'
import { undoInstall } from './compensate.ts'
import { forceUninstall, uninstall } from './uninstall.ts'

/** Opens the module runtime. Tests pass their own. */
export type RuntimeFactory = () => Promise<ModuleRuntime>

/** Handlers of module operations. */
export function moduleHandlers(pick: RuntimeFactory = moduleRuntime): OperationHandlers {
  const kind = (work: typeof install, giveUp: typeof undoInstall): OperationHandler => ({
    run: async (journal) => work(journal, await pick()),
    compensate: async (journal, reason) => giveUp(journal, await pick(), reason),
    classifyError: classifyModuleError,
  })
  return { ModuleInstall: kind(install, undoInstall), ModuleUninstall: kind(uninstall, forceUninstall) }
}
