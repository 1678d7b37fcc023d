import { failpoint } from '@platform/core/lib/failpoint'
import { log } from '@platform/core/log'
import { type OperationLease } from '@platform/core/operations/lease'
import { type ErrorClassification } from '@platform/core/operations/run'
import { type InstalledRelease, parseUpdateState, type UpdatePlan, updatePlan } from '@platform/core/updates/record'
import * as keys from '@platform/core/db/keys'
import { get } from '@platform/core/db/table'
import { finishUpdate } from '@platform/core/updates/finish'
import { isSameRelease } from '@platform/core/updates/release-identity'
import { shiftToZero } from './shift-to-zero.ts'
import { TargetError, type UpdateTarget } from './target/port.ts'

/**
 * Ends an update that cannot be done: what served before it serves again, alone. Where the release does so already the update
 * is done, whatever went wrong behind that. Throws what may pass; the update then goes on being under way.
 */
export async function rollBack(
  journal: OperationLease,
  target: UpdateTarget,
  reason: ErrorClassification,
): Promise<void> {
  // Whose update it is not any more changes nothing.
  await journal.keep()
  const plan = updatePlan(journal.operation)
  const { jobId } = parseUpdateState(await get(keys.updateState()))
  if (jobId !== journal.operation.id) return endFailed(journal, reason, '')
  const serving = await servingNow(target)
  if (serving !== undefined && isSameRelease(serving, plan.release)) {
    return finishUpdate(journal.operation, { status: 'Completed', outcome: `Version ${serving.version} serves.` })
  }
  const isOthers = serving !== undefined && !isSameRelease(serving, plan.before)
  const state = isOthers ? await withdrawFrom(target, plan, serving) : await revert(target, plan)
  await failpoint('update.reverted')
  return endFailed(journal, reason, state)
}

const endFailed = ({ operation }: OperationLease, { message }: ErrorClassification, state: string): Promise<void> =>
  finishUpdate(operation, { status: 'Failed', outcome: [message, state].filter(Boolean).join(' ') })

/** Undefined where somebody else has changed the target, and no release serves alone. */
async function servingNow(target: UpdateTarget): Promise<InstalledRelease | undefined> {
  try {
    return await target.current()
  } catch (error) {
    if (error instanceof TargetError && error.isFinal) return undefined
    throw error
  }
}

/** What somebody has deployed meanwhile stays; the release is not to have a share of it. */
async function withdrawFrom(target: UpdateTarget, plan: UpdatePlan, serving: InstalledRelease): Promise<string> {
  await shiftToZero(target, plan)
  return `Version ${serving.version} serves.`
}

/** Answers what there is to say of what serves now. */
async function revert(target: UpdateTarget, { release, before }: UpdatePlan): Promise<string> {
  try {
    await target.revert(release, before)
    return `Version ${before.version} serves.`
  } catch (error) {
    if (!(error instanceof TargetError) || !error.isFinal) throw error
    log('error', 'An update could not be undone as a whole', { version: release.version, cause: error })
    return `The way back to version ${before.version} is not complete: ${error.message}`
  }
}
