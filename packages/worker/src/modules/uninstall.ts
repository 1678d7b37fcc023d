import { now } from '@platform/core/clock'
import * as keys from '@platform/core/db/keys'
import { remove } from '@platform/core/db/table'
import { failpoint } from '@platform/core/lib/failpoint'
import { log } from '@platform/core/log'
import type { InstallState } from '@platform/core/modules/install-state'
import { uninstallPlan } from '@platform/core/modules/plans'
import { reserveRoutesWrite } from '@platform/core/modules/routes'
import { shutDown } from './lifecycle/shut-down.ts'
import type { ModuleRuntime } from '../runtimes/port.ts'
import type { OperationLease } from '@platform/core/operations/lease'
import { finishWith, type FinishChange } from './finish.ts'
import { recordPublished } from './lifecycle/published.ts'
import { findModule } from './records.ts'
import { deleteEvents } from './delivery-state.ts'

/**
 * Stops a module that no longer receives requests, and deletes its record, health, remaining route reservation and
 * pending events.
 */
export async function uninstall(lease: OperationLease, runtime: ModuleRuntime): Promise<void> {
  const { operation } = lease
  const { moduleId } = uninstallPlan(operation)
  await lease.startStep('stop')
  const record = await findModule(moduleId)
  // A worker whose lease has expired may find the module reinstalled.
  if (record?.jobId === operation.id && record.deployment !== undefined) {
    const { problems, published } = await shutDown(runtime, record.deployment)
    if (problems.length > 0) log('warn', 'Module did not stop cleanly', { moduleId, problems })
    await recordPublished(record, published, { atMs: now(), name: operation.id })
  }
  await failpoint('module.stopped')
  await deleteModule(lease, 'The module is uninstalled.')
}

/**
 * Deletes a module that could not be stopped, because the user wants it removed. The next supervision run removes any
 * deployment that still runs.
 */
export const forceUninstall = (lease: OperationLease): Promise<void> =>
  deleteModule(lease, 'The module is uninstalled. Its deployment is removed as soon as the runtime is reachable.')

async function deleteModule(lease: OperationLease, outcome: string): Promise<void> {
  const { operation } = lease
  const { moduleId, version } = uninstallPlan(operation)
  await lease.startStep('remove')
  await deleteEvents(moduleId)
  await failpoint('module.forgotten')
  await finishWith(lease, { status: 'Completed', outcome }, moduleId, (state) => ({
    writes: state.module?.jobId === operation.id ? removalWrites(state, moduleId, operation.id) : [],
    events: [{ name: 'module.uninstalled', subject: moduleId, data: { moduleId, version, jobId: operation.id } }],
  }))
}

const removalWrites = ({ routes }: InstallState, moduleId: string, jobId: string): FinishChange['writes'] => [
  remove(keys.module(moduleId), { jobId: { is: jobId } }),
  remove(keys.moduleHealth(moduleId)),
  ...(routes.reservations.has(moduleId) ? [reserveRoutesWrite(routes, moduleId, undefined)] : []),
]
