import { type UninstallAccepted } from '@platform/contract/module'
import { type Caller } from '../caller.ts'
import { readCatalog } from './catalog/catalog.ts'
import { offersOf } from './catalog/select.ts'
import { commit } from '../outbox/commit.ts'
import { now } from '../clock.ts'
import { fault } from '../error.ts'
import { lockStep, refuseIfLocked, standingOf } from './install-state.ts'
import { uninstallSteps } from './plans.ts'
import { claimStep } from './routes.ts'
import { isModuleId } from './record.ts'
import { newOperation, queueing } from '../operations/operation.ts'
import { announceOperation } from '../aws/queues.ts'
import { takingTurns } from '../db/offset-list.ts'

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
