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

/** A module that is not to run gets less time. */
const undoGraceMs = 5000

/** Makes everything as it was before: the deployment goes, and with a new module its row, its claim and its health. */
export async function undoInstall(journal: OperationLease, runtime: ModuleRuntime, reason: Judgement): Promise<void> {
  const { operation } = journal
  const { release } = installPlan(operation)
  // Whose operation it is not any more removes nothing.
  await journal.keep()
  await removeAttempt(runtime, deploymentIdOf(release.moduleId, operation.id))
  await failpoint('module.undone')
  const end = { status: 'Failed', outcome: wordsOf(reason) } as const
  await finishWith(journal, end, release.moduleId, (standing) => ({
    steps: standing.row?.jobId === operation.id ? backSteps(standing, installPlan(operation), operation.id) : [],
    events: [failed(operation, release, reason)],
  }))
}

/** The code leads to what the documents say of it. */
const wordsOf = ({ message, code }: Judgement): string => (code === undefined ? message : `${message} (${code})`)

async function removeAttempt(runtime: ModuleRuntime, id: string): Promise<void> {
  try {
    const left = (await runtime.list()).filter(({ deployment }) => deployment.id === id)
    await Promise.all(left.map(({ deployment }) => shutDown(runtime, deployment, { graceMs: undoGraceMs })))
  } catch (cause) {
    log('error', 'A deployment that is not wanted could not be removed; the heartbeat will', { deployment: id, cause })
  }
}

function backSteps(
  { row, routes }: InstallState,
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
