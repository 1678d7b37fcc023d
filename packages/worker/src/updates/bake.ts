import { setTimeout as delay } from 'node:timers/promises'
import { now } from '@platform/core/clock'
import { config } from '@platform/core/config'
import { versionErrorsSince } from '@platform/core/updates/error-count'
import { type InstalledRelease, type UpdatePlan } from '@platform/core/updates/record'
import { exceedsErrorBudget } from './error-budget.ts'
import { UpdateError } from './errors.ts'
import { readiness } from './smoke-requests.ts'
import { probeAll, smokeRequest } from './smoke.ts'
import { type TrafficPercent } from './target/port.ts'
import { type UpdateWork } from './apply.ts'

const betweenMs = 1000
/** How far back the old version's usual failures are looked for. */
const usualMs = 300_000
/** Whatever somebody waits for has been answered by then, or never is. */
const answerMs = 31_000

/** Failures of two versions that serve side by side: what they have counted, and what their host has. */
interface Counts {
  ofRelease: number
  ofBefore: number
  /** When the oldest request began that the release has yet to answer. */
  oldestMs: number | undefined
}

/** What was counted before a release got its share. */
export interface ErrorBaseline extends Counts {
  atMs: number
  /** What the version before used to fail, in a millisecond. */
  usualPerMs: number
}

/** Counts before a share is given: what is counted by the minute is told apart by when it was counted. Three calls. */
export async function measureBaseline(work: UpdateWork, plan: UpdatePlan): Promise<ErrorBaseline> {
  const atMs = now()
  const [counts, usual] = await Promise.all([
    countSince(work, plan, atMs),
    failuresOf(work, plan.before, atMs - usualMs),
  ])
  return { atMs, ...counts, usualPerMs: usual.failures / usualMs }
}

async function countSince(work: UpdateWork, { release, before }: UpdatePlan, sinceMs: number): Promise<Counts> {
  const [its, beside] = await Promise.all([failuresOf(work, release, sinceMs), failuresOf(work, before, sinceMs)])
  return { ofRelease: its.failures, ofBefore: beside.failures, oldestMs: its.oldestMs }
}

/** A function counts what it lives to count; its host counts the rest, where it can. One call to the store. */
async function failuresOf({ target }: UpdateWork, release: InstalledRelease, sinceMs: number) {
  const [counted, unanswered] = await Promise.all([
    versionErrorsSince(release.version, sinceMs),
    target.unanswered(release, sinceMs),
  ])
  return { failures: counted + (unanswered?.faults ?? 0), oldestMs: unanswered?.oldestMs }
}

/**
 * Watches a release at its share for as long as the settings say, and on until it has answered what it was asked by then, or
 * cannot any more. Throws `UpdateFailure` where it does not answer its probes, or fails more than what served before. Two calls
 * to the store in each second.
 */
export async function bake(
  work: UpdateWork,
  plan: UpdatePlan,
  share: TrafficPercent,
  first: ErrorBaseline,
): Promise<void> {
  const untilMs = now() + config.PLAT_UPDATE_BAKE_SECONDS * 1000
  for (;;) {
    await probeAll(work, plan.release)
    await smokeRequest(work, plan.release, readiness)
    const counts = await countSince(work, plan, first.atMs)
    const problem = excess(plan, share, first, counts)
    if (problem !== undefined) throw new UpdateError(problem)
    const mayFailYet = (counts.oldestMs ?? Infinity) < untilMs && now() < first.atMs + answerMs
    if (now() >= untilMs && !mayFailYet) return
    await delay(betweenMs)
  }
}

function excess(
  { release, before }: UpdatePlan,
  share: TrafficPercent,
  first: ErrorBaseline,
  counts: Counts,
): string | undefined {
  const [faults, faultsBeside] = [counts.ofRelease - first.ofRelease, counts.ofBefore - first.ofBefore]
  const watchedMs = now() - first.atMs
  if (!exceedsErrorBudget({ share, faults, faultsBeside, usualFaults: first.usualPerMs * watchedMs })) return undefined
  const beside = `version ${before.version} ${faultsBeside} times in the same time`
  return `Version ${release.version} failed ${faults} times in ${Math.ceil(watchedMs / 1000)} s at ${share} %, ${beside}.`
}
