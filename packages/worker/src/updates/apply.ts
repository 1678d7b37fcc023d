import { failpoint } from '@platform/core/lib/failpoint'
import { LeaseLost } from '@platform/core/operations/operation'
import { type OperationLease } from '@platform/core/operations/lease'
import { finishUpdate } from '@platform/core/updates/finish'
import { type UpdatePlan, updatePlan } from '@platform/core/updates/record'
import { classifyUpdateError } from './errors.ts'
import { trafficStepsOf } from './traffic-steps.ts'
import { preflight } from './preflight.ts'
import { runSmokeTests } from './smoke.ts'
import { type UpdateTarget } from './target/port.ts'
import { measureBaseline, bake } from './bake.ts'
import { shiftToZero } from './shift-to-zero.ts'

/** What an update is done with. */
export interface UpdateWork {
  journal: OperationLease
  target: UpdateTarget
  /** Every function of the platform. */
  names: readonly string[]
}

/**
 * Brings a release to serve, a share of what comes in after the other (D51). Every try walks all steps again, and each may be
 * done twice. Once everything goes to the release alone there is no way back but to the end; until then there is no other.
 */
export async function update(work: UpdateWork): Promise<void> {
  const { journal, target } = work
  const plan = updatePlan(journal.operation)
  await journal.enter('preflight')
  const staged = await preflight(work, plan)
  if (staged !== undefined) {
    await journal.enter('stage')
    await target.stage(staged)
    await failpoint('update.staged')
    await journal.enter('smoke')
    await runSmokeTests(work, plan)
    await failpoint('update.smoked')
    await shiftAll(work, plan)
  }
  await journal.enter('commit')
  await target.commit(plan.release, plan.before)
  await failpoint('update.committed')
  await finishUpdate(journal.operation, { status: 'Completed', outcome: `Version ${plan.release.version} serves.` })
}

async function shiftAll(work: UpdateWork, plan: UpdatePlan): Promise<void> {
  const { journal, target } = work
  try {
    for (const share of trafficStepsOf(plan)) {
      await journal.enter(`shift-${share}`)
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
