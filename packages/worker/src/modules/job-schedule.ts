import type { ModuleManifest } from '@platform/contract/manifest'

type BackgroundJob = ModuleManifest['spec']['backgroundJobs'][number]

/** A supervision run may be slightly early, so it also calls jobs that are due within this time. */
const maxToleranceMs = 5000

/** The last due time of each job in milliseconds, on a grid of its interval that starts at its first call. */
export type JobSchedule = Readonly<Record<string, number>>

/**
 * Returns the due jobs, and the schedule to store before they are called. A job with a shorter interval than the
 * supervision is due once at every supervision run; missed runs are skipped.
 */
export function dueJobs(
  jobs: readonly BackgroundJob[],
  before: JobSchedule,
  nowMs: number,
): { due: BackgroundJob[]; slots: JobSchedule } {
  // A Map, because a job id may be `constructor`, a property of every object.
  const lastDueTimes = new Map(Object.entries(before))
  const slots = jobs.map((job) => ({ job, slotMs: slotOf(job, lastDueTimes.get(job.id), nowMs) }))
  return {
    due: slots.filter(({ job, slotMs }) => slotMs !== lastDueTimes.get(job.id)).map(({ job }) => job),
    slots: Object.fromEntries(slots.map(({ job, slotMs }) => [job.id, slotMs])),
  }
}

function slotOf({ intervalSeconds }: BackgroundJob, lastMs: number | undefined, nowMs: number): number {
  const intervalMs = intervalSeconds * 1000
  // If the last due time is far in the future, the clock was set back.
  if (lastMs === undefined || lastMs > nowMs + intervalMs) return nowMs
  const toleranceMs = Math.min(maxToleranceMs, intervalMs / 2)
  return lastMs + intervalMs * Math.max(0, Math.floor((nowMs + toleranceMs - lastMs) / intervalMs))
}
