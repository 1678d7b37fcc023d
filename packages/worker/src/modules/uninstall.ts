import { now } from '@platform/core/clock'
import * as keys from '@platform/core/db/keys'
import { remove } from '@platform/core/db/table'
import { failpoint } from '@platform/core/lib/failpoint'
import { log } from '@platform/core/log'
import { type InstallState } from '@platform/core/modules/install-state'
import { uninstallPlan } from '@platform/core/modules/plans'
import { reserveRoutesWrite } from '@platform/core/modules/routes'
import { shutDown } from './lifecycle/shut-down.ts'
import { type ModuleRuntime } from '../runtimes/port.ts'
import { type OperationLease } from '@platform/core/operations/lease'
import { finishWith, type FinishChange } from './finish.ts'
import { recordPublished } from './lifecycle/published.ts'
import { findModule } from './records.ts'
import { forgetEvents } from './pending-event.ts'

/**
 * Stops a module that is no longer routed to, and deletes its record, health, remaining route reservation and pending
 * events.
 */
export async function uninstall(journal: OperationLease, runtime: ModuleRuntime): Promise<void> {
  const { operation } = journal
  const { moduleId } = uninstallPlan(operation)
  await journal.startStep('stop')
  const row = await findModule(moduleId)
  // A worker that is slower than its lease may find the module reinstalled.
  if (row?.jobId === operation.id && row.deployment !== undefined) {
    const { problems, published } = await shutDown(runtime, row.deployment)
    if (problems.length > 0) log('warn', 'Module did not stop cleanly', { moduleId, problems })
    await recordPublished(row, published, { atMs: now(), name: operation.id })
  }
  await failpoint('module.stopped')
  await forget(journal, 'It is gone.')
}

/**
 * Deletes a module that repeatedly failed to stop, because the user wants it removed. The heartbeat removes any
 * deployment that still runs.
 */
export const forceUninstall = (journal: OperationLease): Promise<void> =>
  forget(journal, 'It is gone; what it ran on is removed as soon as that can be reached.')

async function forget(journal: OperationLease, outcome: string): Promise<void> {
  const { operation } = journal
  const { moduleId, version } = uninstallPlan(operation)
  await journal.startStep('remove')
  await forgetEvents(moduleId)
  await failpoint('module.forgotten')
  await finishWith(journal, { status: 'Completed', outcome }, moduleId, (standing) => ({
    writes: standing.module?.jobId === operation.id ? removal(standing, moduleId, operation.id) : [],
    events: [{ name: 'module.uninstalled', subject: moduleId, data: { moduleId, version, jobId: operation.id } }],
  }))
}

const removal = ({ routes }: InstallState, moduleId: string, jobId: string): FinishChange['writes'] => [
  remove(keys.module(moduleId), { jobId: { is: jobId } }),
  remove(keys.moduleHealth(moduleId)),
  ...(routes.reservations.has(moduleId) ? [reserveRoutesWrite(routes, moduleId, undefined)] : []),
]
