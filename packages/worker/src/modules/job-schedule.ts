import { type ModuleManifest } from '@platform/contract/manifest'

type BackgroundJob = ModuleManifest['spec']['backgroundJobs'][number]

/** Ticks do not come to the millisecond: one that is a little early calls a job all the same. */
const earlyMs = 5000

/** When each job was last due, in milliseconds: times on a grid of its interval, which begins at its first call. */
export type JobSchedule = Readonly<Record<string, number>>

/**
 * The jobs that are due, and the slots as they are once those are called. A job whose interval is shorter than the ticks is
 * due at every tick, once; slots that went by are not made up for.
 */
export function dueJobs(
  jobs: readonly BackgroundJob[],
  before: JobSchedule,
  nowMs: number,
): { due: BackgroundJob[]; slots: JobSchedule } {
  // A job may be called `constructor`, which every object has.
  const last = new Map(Object.entries(before))
  const slots = jobs.map((job) => ({ job, slotMs: slotOf(job, last.get(job.id), nowMs) }))
  return {
    due: slots.filter(({ job, slotMs }) => slotMs !== last.get(job.id)).map(({ job }) => job),
    slots: Object.fromEntries(slots.map(({ job, slotMs }) => [job.id, slotMs])),
  }
}

function slotOf({ intervalSeconds }: BackgroundJob, lastMs: number | undefined, nowMs: number): number {
  if (lastMs === undefined) return nowMs
  const intervalMs = intervalSeconds * 1000
  const slack = Math.min(earlyMs, intervalMs / 2)
  return lastMs + intervalMs * Math.max(0, Math.floor((nowMs + slack - lastMs) / intervalMs))
}
