import { setTimeout as delay } from 'node:timers/promises'
import { elapsedMs, now } from '@platform/core/clock'
import { config } from '@platform/core/config'
import { log } from '@platform/core/log'
import { versionErrorsSince } from '@platform/core/updates/error-count'
import type { InstalledRelease, UpdatePlan } from '@platform/core/updates/record'
import { UpdateError } from './errors.ts'
import { readinessRequest, probeAll, sendSmokeRequest } from './smoke.ts'
import type { TrafficPercent, UpdateTarget } from './target/port.ts'
import type { UpdateWork } from './apply.ts'

const pollMs = 1000
/** Period over which the usual failure rate of the old version is measured. */
const baselineMs = 300_000
/** A request without a response after this time never gets one. */
const maxRequestMs = 31_000

/** Failures of two versions that serve side by side, as counted by the versions and by their host. */
interface FailureCounts {
  ofRelease: number
  ofBefore: number
  /** Start of the oldest request that the release has not answered. */
  oldestMs: number | undefined
}

export interface ErrorBaseline extends FailureCounts {
  atMs: number
  /** The same time on the clock of `elapsedMs`. */
  startedMs: number
  /** Usual failure rate of the old version, per millisecond. */
  usualPerMs: number
}

/** Counts the failures before a shift. They are counted by the minute, so they must be subtracted later. */
export async function measureBaseline(work: UpdateWork, plan: UpdatePlan): Promise<ErrorBaseline> {
  const [atMs, startedMs] = [now(), elapsedMs()]
  const [counts, usualFailures] = await Promise.all([
    countSince(work, plan, atMs),
    failuresOf(work, plan.before, atMs - baselineMs),
  ])
  return { atMs, startedMs, ...counts, usualPerMs: usualFailures.failures / baselineMs }
}

async function countSince(work: UpdateWork, { release, before }: UpdatePlan, sinceMs: number): Promise<FailureCounts> {
  const [ofRelease, ofBefore] = await Promise.all([
    failuresOf(work, release, sinceMs),
    failuresOf(work, before, sinceMs),
  ])
  return { ofRelease: ofRelease.failures, ofBefore: ofBefore.failures, oldestMs: ofRelease.oldestMs }
}

/** Counts the failures of a release. A function counts those that it survives; its host counts the others if it can. */
async function failuresOf({ target }: UpdateWork, release: InstalledRelease, sinceMs: number) {
  const [countedFailures, unansweredStats] = await Promise.all([
    versionErrorsSince(release.version, sinceMs),
    target.unanswered(release, sinceMs),
  ])
  return { failures: countedFailures + (unansweredStats?.faults ?? 0), oldestMs: unansweredStats?.oldestMs }
}

/**
 * Monitors a release at its share for the configured time. If requests of that time are unanswered, continues until
 * they have a response, but at most for another `maxRequestMs`. Throws `UpdateError` if the release does not respond to
 * its probes or exceeds the error budget.
 */
export async function bake(
  work: UpdateWork,
  plan: UpdatePlan,
  share: TrafficPercent,
  baseline: ErrorBaseline,
): Promise<void> {
  const bakeMs = config.PLAT_UPDATE_BAKE_SECONDS * 1000
  const [untilMs, endMs] = [now() + bakeMs, elapsedMs() + bakeMs]
  for (;;) {
    await probeAll(work, plan.release)
    await sendSmokeRequest(work, plan.release, readinessRequest)
    const counts = await countSince(work, plan, baseline.atMs)
    const problem = findExcess(plan, share, baseline, counts)
    if (problem !== undefined) throw new UpdateError(problem)
    const hasPendingRequests = (counts.oldestMs ?? Infinity) < untilMs && elapsedMs() < endMs + maxRequestMs
    if (elapsedMs() >= endMs && !hasPendingRequests) return
    await delay(pollMs)
  }
}

function findExcess(
  { release, before }: UpdatePlan,
  share: TrafficPercent,
  baseline: ErrorBaseline,
  counts: FailureCounts,
): string | undefined {
  const [faults, oldVersionFaults] = [counts.ofRelease - baseline.ofRelease, counts.ofBefore - baseline.ofBefore]
  const bakedMs = elapsedMs() - baseline.startedMs
  if (!exceedsErrorBudget({ share, faults, oldVersionFaults, usualFaults: baseline.usualPerMs * bakedMs }))
    return undefined
  const ofBefore = `version ${before.version} ${oldVersionFaults} times in the same time`
  return `Version ${release.version} failed ${faults} times in ${Math.ceil(bakedMs / 1000)} s at ${share} %, ${ofBefore}.`
}

export interface ErrorCounts {
  share: TrafficPercent
  /** Failures of the new version since it got its share. */
  faults: number
  /** Failures of the old version in the same period. */
  oldVersionFaults: number
  /** Usual failures of the old version in a period of the same length, with all traffic. */
  usualFaults: number
}

/** Fewer failures are not significant. */
const minFailures = 3
const toleranceFactor = 2

/**
 * Whether a new version fails more than the old one: at least three times, and more than twice as often as the old
 * version would at this share, now or before. At 100 %, only the earlier failures of the old version are available.
 */
export function exceedsErrorBudget({ share, faults, oldVersionFaults, usualFaults }: ErrorCounts): boolean {
  const fraction = share / 100
  const expectedErrors = fraction < 1 ? (oldVersionFaults * fraction) / (1 - fraction) : 0
  return faults >= minFailures && faults > toleranceFactor * Math.max(expectedErrors, usualFaults * fraction)
}

/** Removes a release's share, on a best-effort basis: an unmonitored release should receive no traffic. */
export async function shiftToZero(target: UpdateTarget, { release }: UpdatePlan): Promise<void> {
  try {
    await target.shift(release, 0)
  } catch (cause) {
    log('warn', 'Failed to shift traffic back; the release keeps its share', { version: release.version, cause })
  }
}
