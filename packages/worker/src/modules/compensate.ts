import { now } from '@platform/core/clock'
import * as keys from '@platform/core/db/keys'
import { patch, remove, type WriteItem } from '@platform/core/db/table'
import { failpoint } from '@platform/core/lib/failpoint'
import { log } from '@platform/core/log'
import { type InstallState } from '@platform/core/modules/install-state'
import { type InstallPlan, installPlan } from '@platform/core/modules/plans'
import { reserveRoutesWrite } from '@platform/core/modules/routes'
import { type ModuleRelease } from '@platform/core/modules/record'
import { type OperationRecord } from '@platform/core/operations/record'
import { shutDown } from './lifecycle/shut-down.ts'
import { type ModuleRuntime } from '../runtimes/port.ts'
import { type Judgement } from './errors.ts'
import { deploymentIdOf } from './install.ts'
import { type OperationLease } from '@platform/core/operations/lease'
import { finishWith } from './finish.ts'

/** A module that will not run gets less time to stop. */
const undoGraceMs = 5000

/** Restores the previous state: removes the deployment and, for a new module, its record and route reservation. */
export async function undoInstall(journal: OperationLease, runtime: ModuleRuntime, reason: Judgement): Promise<void> {
  const { operation } = journal
  const { release } = installPlan(operation)
  // A worker that has lost the lease must not remove anything.
  await journal.renew()
  await removeAttempt(runtime, deploymentIdOf(release.moduleId, operation.id))
  await failpoint('module.compensated')
  const end = { status: 'Failed', outcome: wordsOf(reason) } as const
  await finishWith(journal, end, release.moduleId, (standing) => ({
    writes: standing.module?.jobId === operation.id ? backSteps(standing, installPlan(operation), operation.id) : [],
    events: [failed(operation, release, reason)],
  }))
}

/** The code refers to the documentation of the error. */
const wordsOf = ({ message, code }: Judgement): string => (code === undefined ? message : `${message} (${code})`)

async function removeAttempt(runtime: ModuleRuntime, id: string): Promise<void> {
  try {
    const left = (await runtime.list()).filter(({ deployment }) => deployment.id === id)
    await Promise.all(left.map(({ deployment }) => shutDown(runtime, deployment, { graceMs: undoGraceMs })))
  } catch (cause) {
    log('error', 'Failed to remove an unwanted deployment; the heartbeat retries', { deployment: id, cause })
  }
}

function backSteps(
  { module: row, routes }: InstallState,
  { release, previousVersion }: InstallPlan,
  jobId: string,
): WriteItem[] {
  const { moduleId } = release
  const isOurs = { jobId: { is: jobId } }
  if (previousVersion === undefined) {
    return [remove(keys.module(moduleId), isOurs), reserveRoutesWrite(routes, moduleId, undefined)]
  }
  const set = { state: row?.deployment === undefined ? 'Failed' : 'Running', updatedAtMs: now() }
  return [patch(keys.module(moduleId), { set, remove: ['jobId'] }, isOurs)]
}

const messageLength = 1000

const failed = (
  { id: jobId }: OperationRecord,
  { moduleId, version }: ModuleRelease,
  { message, code }: Judgement,
) => ({
  name: 'module.failed' as const,
  subject: moduleId,
  data: { moduleId, version, jobId, message: message.slice(0, messageLength), ...(code !== undefined && { code }) },
})
