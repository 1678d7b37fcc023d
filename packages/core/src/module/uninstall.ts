import { type UninstallAccepted } from '@platform/contract/module'
import { type Caller } from '../caller.ts'
import { readCatalog } from './catalog.ts'
import { offersOf } from './catalog-choice.ts'
import { commit } from '../change.ts'
import { now } from '../clock.ts'
import { fault } from '../fault.ts'
import { lockStep, refuseIfLocked, standingOf } from './lock.ts'
import { uninstallSteps } from './operation.ts'
import { claimStep } from './routes.ts'
import { isModuleId } from './row.ts'
import { newOperation, queueing } from '../operation/operation.ts'
import { announceOperation } from '../queue.ts'
import { takingTurns } from '../list/ranked-list.ts'

/**
 * Uninstalls a module, a failed one as well: nothing of it is reached from outside from now on, and a job stops it and
 * clears it away. Two calls and a message. Throws `module_not_installed`, or `module_not_found` where the catalog has none.
 */
export async function uninstall(caller: Caller, moduleId: string): Promise<UninstallAccepted> {
  if (!isModuleId(moduleId)) throw fault('module_not_found')
  return takingTurns(async () => {
    const { row, routes } = await standingOf(caller, moduleId)
    if (row === undefined) throw await missing(moduleId)
    refuseIfLocked(row)
    const { version } = row.release
    const operation = newOperation(caller, {
      type: 'ModuleUninstall',
      payload: { moduleId, version },
      plan: { moduleId, version },
      steps: uninstallSteps,
    })
    const answer = { jobId: operation.id, moduleId, status: 'Uninstalling' as const }
    const queued = queueing(operation)
    const refusal = await commit(caller, {
      steps: [
        lockStep(row, { state: 'Uninstalling', jobId: operation.id, updatedAtMs: now() }),
        claimStep(routes, moduleId, undefined),
        ...queued.steps,
      ],
      answer,
      audit: { action: 'module.uninstall', resource: moduleId, detail: version },
      events: queued.events,
      moves: queued.moves,
    })
    if (refusal !== undefined) return undefined
    await announceOperation({ organisationId: caller.organisationId, jobId: operation.id })
    return answer
  })
}

async function missing(moduleId: string) {
  const { repositories } = await readCatalog()
  return fault(offersOf(repositories).has(moduleId) ? 'module_not_installed' : 'module_not_found')
}
