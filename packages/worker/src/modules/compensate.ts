import { now } from '@platform/core/clock'
import * as keys from '@platform/core/db/keys'
import { patch, remove, type WriteItem } from '@platform/core/db/table'
import { failpoint } from '@platform/core/lib/failpoint'
import { log } from '@platform/core/log'
import type { InstallState } from '@platform/core/modules/install-state'
import { type InstallPlan, installPlan } from '@platform/core/modules/plans'
import { reserveRoutesWrite } from '@platform/core/modules/routes'
import type { ModuleRelease } from '@platform/core/modules/record'
import type { OperationRecord } from '@platform/core/operations/record'
import { shutDown } from './lifecycle/shut-down.ts'
import type { ModuleRuntime } from '../runtimes/port.ts'
import type { ModuleErrorClassification } from './errors.ts'
import { deploymentIdOf } from './install.ts'
import type { OperationLease } from '@platform/core/operations/lease'
import { finishWith } from './finish.ts'

/** A failed module gets less time to stop than a healthy one. */
const revertGraceMs = 5000

/** Restores the previous state: removes the deployment and, for a new module, its record and route reservation. */
export async function revertInstall(
  lease: OperationLease,
  runtime: ModuleRuntime,
  reason: ModuleErrorClassification,
): Promise<void> {
  const { operation } = lease
  const { release } = installPlan(operation)
  // A worker that has lost the lease must not remove anything.
  await lease.renew()
  await removeDeployment(runtime, deploymentIdOf(release.moduleId, operation.id))
  await failpoint('module.compensated')
  const result = { status: 'Failed', outcome: describeReason(reason) } as const
  await finishWith(lease, result, release.moduleId, (state) => ({
    writes: state.module?.jobId === operation.id ? restoreWrites(state, installPlan(operation), operation.id) : [],
    events: [failedEvent(operation, release, reason)],
  }))
}

/** Appends the error code, which the documentation explains. */
const describeReason = ({ message, code }: ModuleErrorClassification): string =>
  code === undefined ? message : `${message} (${code})`

async function removeDeployment(runtime: ModuleRuntime, id: string): Promise<void> {
  try {
    const matches = (await runtime.list()).filter(({ deployment }) => deployment.id === id)
    await Promise.all(matches.map(({ deployment }) => shutDown(runtime, deployment, { graceMs: revertGraceMs })))
  } catch (cause) {
    log('error', 'Failed to remove an unwanted deployment; the heartbeat retries', { deployment: id, cause })
  }
}

function restoreWrites(
  { module: record, routes }: InstallState,
  { release, previousVersion }: InstallPlan,
  jobId: string,
): WriteItem[] {
  const { moduleId } = release
  const lockedByJob = { jobId: { is: jobId } }
  if (previousVersion === undefined) {
    return [remove(keys.module(moduleId), lockedByJob), reserveRoutesWrite(routes, moduleId, undefined)]
  }
  const set = { state: record?.deployment === undefined ? 'Failed' : 'Running', updatedAtMs: now() }
  return [patch(keys.module(moduleId), { set, remove: ['jobId'] }, lockedByJob)]
}

const maxMessageLength = 1000

const failedEvent = (
  { id: jobId }: OperationRecord,
  { moduleId, version }: ModuleRelease,
  { message, code }: ModuleErrorClassification,
) => ({
  name: 'module.failed' as const,
  subject: moduleId,
  data: { moduleId, version, jobId, message: message.slice(0, maxMessageLength), ...(code !== undefined && { code }) },
})
