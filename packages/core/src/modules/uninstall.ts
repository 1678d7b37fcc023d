import type { UninstallAccepted } from '@platform/contract/module'
import type { Caller } from '../caller.ts'
import { readCatalog } from './catalog/catalog.ts'
import { choicesByModule } from './catalog/select.ts'
import { commit } from '../outbox/commit.ts'
import { now } from '../clock.ts'
import { platformError } from '../error.ts'
import { lockWrite, rejectIfLocked, readInstallState } from './install-state.ts'
import { uninstallSteps } from './plans.ts'
import { reserveRoutesWrite } from './routes.ts'
import { isModuleId } from './record.ts'
import { newOperation, queueChange } from '../operations/operation.ts'
import { enqueueOperation } from '../aws/queues.ts'
import { retryOnConflict } from '../db/offset-list.ts'

/**
 * Removes the routes of a module at once. An operation then stops and removes the module. Failed modules can be
 * uninstalled too.
 */
export async function uninstall(caller: Caller, moduleId: string): Promise<UninstallAccepted> {
  if (!isModuleId(moduleId)) throw platformError('module_not_found')
  return retryOnConflict(async () => {
    const { module, routes } = await readInstallState(caller, moduleId)
    if (module === undefined) throw await missingError(moduleId)
    rejectIfLocked(module)
    const { version } = module.release
    const operation = newOperation(caller, {
      type: 'ModuleUninstall',
      payload: { moduleId, version },
      plan: { moduleId, version },
      steps: uninstallSteps,
    })
    const response = { jobId: operation.id, moduleId, status: 'Uninstalling' as const }
    const queueEffects = queueChange(operation)
    const failure = await commit(caller, {
      writes: [
        lockWrite(module, { state: 'Uninstalling', jobId: operation.id, updatedAtMs: now() }),
        reserveRoutesWrite(routes, moduleId, undefined),
        ...queueEffects.writes,
      ],
      response,
      audit: { action: 'module.uninstall', resource: moduleId, detail: version },
      events: queueEffects.events,
      transitions: queueEffects.transitions,
    })
    if (failure !== undefined) return undefined
    await enqueueOperation({ organisationId: caller.organisationId, jobId: operation.id, type: operation.type })
    return response
  })
}

async function missingError(moduleId: string) {
  const { repositories } = await readCatalog()
  return platformError(choicesByModule(repositories).has(moduleId) ? 'module_not_installed' : 'module_not_found')
}
