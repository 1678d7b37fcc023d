import { failpoint } from '@platform/core/lib/failpoint'
import { LeaseLost } from '@platform/core/operations/operation'
import { type OperationLease } from '@platform/core/operations/lease'
import { finishUpdate } from '@platform/core/updates/finish'
import { rollbackSteps, type UpdatePlan, updatePlan, updateSteps } from '@platform/core/updates/record'
import { classifyUpdateError } from './errors.ts'
import { preflight } from './preflight.ts'
import { runSmokeTests } from './smoke.ts'
import { type TrafficPercent, type UpdateTarget } from './target/port.ts'
import { bake, measureBaseline, shiftToZero } from './bake.ts'

/** The dependencies of an update. */
export interface UpdateWork {
  lease: OperationLease
  target: UpdateTarget
  /** Every function of the platform. */
  names: readonly string[]
}

/**
 * Shifts traffic to a release in increasing shares. Every attempt runs all steps again, and each step is
 * idempotent. Once the release serves alone, the update can only be completed; until then it can only be reverted.
 */
export async function update(work: UpdateWork): Promise<void> {
  const { lease, target } = work
  const plan = updatePlan(lease.operation)
  await lease.startStep('preflight')
  const staged = await preflight(work, plan)
  if (staged !== undefined) {
    await lease.startStep('stage')
    await target.stage(staged)
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

/** The traffic shares of a release in order, according to the steps of its job. */
const trafficStepsOf = ({ action }: UpdatePlan): TrafficPercent[] => {
  const steps: readonly string[] = action === 'apply' ? updateSteps : rollbackSteps
  return ([10, 50, 100] as const).filter((share) => steps.includes(`shift-${share}`))
}
