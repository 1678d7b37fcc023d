import { failpoint } from '@platform/core/lib/failpoint'
import { log } from '@platform/core/log'
import type { OperationLease } from '@platform/core/operations/lease'
import type { ErrorClassification } from '@platform/core/operations/run'
import {
  type InstalledRelease,
  parseUpdateState,
  type UpdatePlan,
  updatePlan,
  isSameRelease,
} from '@platform/core/updates/record'
import * as keys from '@platform/core/db/keys'
import { get } from '@platform/core/db/table'
import { finishUpdate } from '@platform/core/updates/finish'
import { shiftToZero } from './bake.ts'
import { TargetError, type UpdateTarget } from './target/port.ts'

/**
 * Compensates a failed update: the previous release serves alone again. If the new release already serves, the update
 * completes regardless of later errors. Throws transient errors; the update then remains in progress.
 */
export async function rollBack(
  lease: OperationLease,
  target: UpdateTarget,
  reason: ErrorClassification,
): Promise<void> {
  // A worker that has lost the lease must not change anything.
  await lease.renew()
  const plan = updatePlan(lease.operation)
  const { jobId } = parseUpdateState(await get(keys.updateState()))
  if (jobId !== lease.operation.id) return finishFailed(lease, reason, '')
  const servingRelease = await currentRelease(target)
  if (servingRelease !== undefined && isSameRelease(servingRelease, plan.release)) {
    return finishUpdate(lease.operation, { status: 'Completed', outcome: `Version ${servingRelease.version} serves.` })
  }
  const isForeign = servingRelease !== undefined && !isSameRelease(servingRelease, plan.before)
  const state = isForeign ? await removeShare(target, plan, servingRelease) : await revert(target, plan)
  await failpoint('update.reverted')
  return finishFailed(lease, reason, state)
}

const finishFailed = ({ operation }: OperationLease, { message }: ErrorClassification, state: string): Promise<void> =>
  finishUpdate(operation, { status: 'Failed', outcome: [message, state].filter(Boolean).join(' ') })

/** Returns the release that serves alone; undefined if there is none, because the target was changed by others. */
async function currentRelease(target: UpdateTarget): Promise<InstalledRelease | undefined> {
  try {
    return await target.current()
  } catch (error) {
    if (error instanceof TargetError && error.isFinal) return undefined
    throw error
  }
}

/** Removes the share of the update's release. A release that was deployed during the update continues to serve. */
async function removeShare(target: UpdateTarget, plan: UpdatePlan, servingRelease: InstalledRelease): Promise<string> {
  await shiftToZero(target, plan)
  return `Version ${servingRelease.version} serves.`
}

/** Returns a sentence about the serving release for the outcome. */
async function revert(target: UpdateTarget, { release, before }: UpdatePlan): Promise<string> {
  try {
    await target.revert(release, before)
    return `Version ${before.version} serves.`
  } catch (error) {
    if (!(error instanceof TargetError) || !error.isFinal) throw error
    log('error', 'Rollback incomplete', { version: release.version, cause: error })
    return `The rollback to version ${before.version} is incomplete: ${error.message}`
  }
}
