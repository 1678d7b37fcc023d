import { failpoint } from '@platform/core/lib/failpoint'
import { LeaseLost } from '@platform/core/operations/operation'
import type { OperationLease } from '@platform/core/operations/lease'
import { finishUpdate } from '@platform/core/updates/finish'
import {
  rollbackSteps,
  type UpdatePlan,
  updatePlan,
  updateSteps,
  type InstalledRelease,
  parseUpdateState,
  isSameRelease,
} from '@platform/core/updates/record'
import { classifyUpdateError, UpdateError } from './errors.ts'
import { runSmokeTests } from './smoke.ts'
import type { TrafficPercent, UpdateTarget, StagedRelease } from './target/port.ts'
import { bake, measureBaseline, shiftToZero } from './bake.ts'
import * as keys from '@platform/core/db/keys'
import { get } from '@platform/core/db/table'
import { infrastructureRevision } from '@platform/core/updates/infrastructure'
import type { Release } from '@platform/core/updates/release-document'
import { fetchFunction, releaseByDigest } from '@platform/core/updates/release-feed'

export interface UpdateWork {
  lease: OperationLease
  target: UpdateTarget
  names: readonly string[]
}

/**
 * Shifts traffic to a release in increasing shares. Every attempt runs all steps again, and each step is idempotent.
 * Once the release serves alone, the update is no longer reverted.
 */
export async function update(work: UpdateWork): Promise<void> {
  const { lease, target } = work
  const plan = updatePlan(lease.operation)
  await lease.startStep('preflight')
  const stagedRelease = await preflight(work, plan)
  if (stagedRelease !== undefined) {
    await lease.startStep('stage')
    await target.stage(stagedRelease)
    await failpoint('update.staged')
    await lease.startStep('smoke')
    await runSmokeTests(work, plan)
    await failpoint('update.tested')
    await shiftAll(work, plan)
  }
  await lease.startStep('commit')
  await target.commit(plan.release, plan.before)
  await failpoint('update.committed')
  await finishUpdate(lease.operation, { status: 'Completed', outcome: `Version ${plan.release.version} serves.` })
}

async function shiftAll(work: UpdateWork, plan: UpdatePlan): Promise<void> {
  const { lease, target } = work
  try {
    for (const share of trafficStepsOf(plan)) {
      await lease.startStep(`shift-${share}`)
      const before = await measureBaseline(work, plan)
      await target.shift(plan.release, share, plan.action === 'rollback')
      await failpoint(`update.shifted-${share}`)
      await bake(work, plan, share, before)
    }
  } catch (error) {
    if (!(error instanceof LeaseLost) && !classifyUpdateError(error).isFinal) await shiftToZero(target, plan)
    throw error
  }
}

const trafficStepsOf = ({ action }: UpdatePlan): TrafficPercent[] => {
  const steps: readonly string[] = action === 'apply' ? updateSteps : rollbackSteps
  return ([10, 50, 100] as const).filter((share) => steps.includes(`shift-${share}`))
}

/**
 * Checks that the plan is still valid. Returns the release to stage, or undefined if it already serves because an
 * earlier attempt has committed it.
 */
async function preflight(work: UpdateWork, plan: UpdatePlan): Promise<StagedRelease | undefined> {
  const { lease, target, names } = work
  const { release, before } = plan
  const { jobId } = parseUpdateState(await get(keys.updateState()))
  if (jobId !== lease.operation.id) throw new UpdateError('Another operation changes the platform.')
  const servingRelease = await target.current()
  if (isSameRelease(servingRelease, release)) return undefined
  if (!isSameRelease(servingRelease, before)) {
    throw new UpdateError(
      `Version ${servingRelease.version} serves instead of ${before.version}: it was deployed after the request.`,
    )
  }
  const stagedRelease = await releaseToStage(plan, names)
  // An earlier attempt may have left a traffic share or an interrupted commit.
  if (lease.operation.attempts > 1) await target.revert(release, before)
  return stagedRelease
}

/**
 * An update verifies its release again, because keys may have left the trust list since it was accepted. A rollback to
 * a release that is still ready needs no verification, so that it works while the registry is unreachable.
 */
async function releaseToStage(
  { action, release }: UpdatePlan,
  functionNames: readonly string[],
): Promise<StagedRelease> {
  let verification: Promise<Release> | undefined
  const verify = () => (verification ??= reverify(release, functionNames))
  if (action === 'apply') await verify()
  return { ...release, functionNames, fetchFunction: async (name) => fetchFunction(await verify(), name) }
}

async function reverify({ repository, digest }: InstalledRelease, names: readonly string[]): Promise<Release> {
  if (repository === undefined || digest === undefined) {
    throw new UpdateError('The release was deployed, not applied, and is no longer ready.')
  }
  const release = await releaseByDigest(repository, digest)
  requireCompatible(release, names)
  return release
}

function requireCompatible(
  { document: { infrastructure, functions } }: Release,
  functionNames: readonly string[],
): void {
  if (infrastructure !== infrastructureRevision()) {
    throw new UpdateError('The release needs other infrastructure. Deploy it instead of applying it.')
  }
  const missingNames = functionNames.filter((name) => !Object.hasOwn(functions, name))
  const unknownNames = Object.keys(functions).filter((name) => !functionNames.includes(name))
  if (missingNames.length + unknownNames.length > 0) {
    throw new UpdateError(
      `The release has other functions: ${[...missingNames, ...unknownNames].join(', ').slice(0, 400)}.`,
    )
  }
}
