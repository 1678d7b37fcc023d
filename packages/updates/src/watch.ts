import { setTimeout as delay } from 'node:timers/promises'
import { now } from '@platform/core/clock'
import { config } from '@platform/core/config'
import { faultsOf } from '@platform/core/fault-tally'
import { type UpdatePlan } from '@platform/core/update-row'
import { isOverBudget } from './budget.ts'
import { UpdateFailure } from './failure.ts'
import { readiness } from './request-event.ts'
import { probeAll, tryRequest } from './smoke.ts'
import { type Share } from './target/port.ts'
import { type UpdateWork } from './update.ts'

const betweenMs = 1000
/** How far back the old version's usual failures are looked for. */
const usualMs = 300_000

/** What was counted before a release got its share. */
export interface Tally {
  atMs: number
  ofRelease: number
  ofBefore: number
  /** What the version before used to fail, in a millisecond. */
  usualPerMs: number
}

/** Counts before a share is given: what is counted by the minute is told apart by when it was counted. Three calls. */
export async function tallyBefore(plan: UpdatePlan): Promise<Tally> {
  const atMs = now()
  const [counts, usual] = await Promise.all([countSince(plan, atMs), faultsOf(plan.before.version, atMs - usualMs)])
  return { atMs, ...counts, usualPerMs: usual / usualMs }
}

async function countSince({ release, before }: UpdatePlan, sinceMs: number) {
  const [ofRelease, ofBefore] = await Promise.all([
    faultsOf(release.version, sinceMs),
    faultsOf(before.version, sinceMs),
  ])
  return { ofRelease, ofBefore }
}

/**
 * Watches a release at its share for as long as the settings say. Throws `UpdateFailure` where it does not answer, or fails
 * more than what served before. Two calls to the store in each second.
 */
export async function watch(work: UpdateWork, plan: UpdatePlan, share: Share, first: Tally): Promise<void> {
  const untilMs = now() + config.PLAT_UPDATE_BAKE_SECONDS * 1000
  for (;;) {
    await probeAll(work, plan.release)
    await tryRequest(work, plan.release, readiness)
    const problem = excess(plan, share, first, await countSince(plan, first.atMs))
    if (problem !== undefined) throw new UpdateFailure(problem)
    if (now() >= untilMs) return
    await delay(betweenMs)
  }
}

function excess(
  { release, before }: UpdatePlan,
  share: Share,
  first: Tally,
  counted: Pick<Tally, 'ofRelease' | 'ofBefore'>,
): string | undefined {
  const [faults, faultsBeside] = [counted.ofRelease - first.ofRelease, counted.ofBefore - first.ofBefore]
  const watchedMs = now() - first.atMs
  if (!isOverBudget({ share, faults, faultsBeside, usualFaults: first.usualPerMs * watchedMs })) return undefined
  const beside = `version ${before.version} ${faultsBeside} times in the same time`
  return `Version ${release.version} failed ${faults} times in ${Math.ceil(watchedMs / 1000)} s at ${share} %, ${beside}.`
}
