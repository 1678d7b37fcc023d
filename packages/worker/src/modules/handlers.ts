import type { OperationHandler, OperationHandlers } from '@platform/core/operations/run'
import type { ModuleRuntime } from '../runtimes/port.ts'
import { classifyModuleError } from './errors.ts'
import { install } from './install.ts'
import { moduleRuntime } from './runtime.ts'
import { revertInstall } from './compensate.ts'
import { forceUninstall, uninstall } from './uninstall.ts'

export type RuntimeFactory = () => Promise<ModuleRuntime>

export function moduleHandlers(openRuntime: RuntimeFactory = moduleRuntime): OperationHandlers {
  const handlerOf = (run: typeof install, compensate: typeof revertInstall): OperationHandler => ({
    run: async (lease) => run(lease, await openRuntime()),
    compensate: async (lease, reason) => compensate(lease, await openRuntime(), reason),
    classifyError: classifyModuleError,
  })
  return { ModuleInstall: handlerOf(install, revertInstall), ModuleUninstall: handlerOf(uninstall, forceUninstall) }
}
