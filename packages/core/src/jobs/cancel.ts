import { type Actor } from '../caller.ts'
import { commit } from '../outbox/commit.ts'
import { now } from '../clock.ts'
import { counterWrites } from '../clusters/counters.ts'
import * as keys from '../db/keys.ts'
import { patch, remove, type WriteItem } from '../db/table.ts'
import { transact } from '../db/transact.ts'
import { type JobEnd, type JobRecord, effectsOfFinish } from './record.ts'
import { notifyRelay } from '../lib/relay-notify.ts'

/** Ends unclaimed jobs and requests cancellation: of one job, or of many of one organisation. */

/** A running job without confirmation of its cancellation ends after this time. */
export const cancelConfirmMs = 60_000
/** A job takes up to three of a transaction's 100 writes. */
export const maxJobsPerTransaction = 32

/** The time of the change, and the response to store for an idempotent request. */
interface Occasion {
  atMs?: number
  answer?: unknown
}

const kept = ({ answer }: Occasion) => (answer === undefined ? {} : { answer })

/** Ends unclaimed jobs, all or none; returns whether all were unchanged. One transaction. */
export async function finishQueued(
  actor: Actor,
  jobs: readonly JobRecord[],
  end: JobEnd,
  occasion: Occasion = {},
): Promise<boolean> {
  const counters = counterWrites(actor.organisationId, jobs.map(counterOfEnd))
  const told = jobs.map((job) => effectsOfFinish(job, end))
  const refusal = await commit(actor, {
    writes: [...jobs.flatMap((job) => endSteps(job, end, occasion)), ...counters.map(({ step }) => step)],
    ...kept(occasion),
    ...(actor.kind === 'user' && { audit: { action: 'job.cancel', resource: jobs[0]?.id ?? '' } }),
    events: told.flatMap(({ events }) => events),
    transitions: told.flatMap(({ transitions }) => transitions),
  })
  return refusal === undefined
}

const counterOfEnd = ({ clusterId, dispatchedAtMs }: JobRecord) => ({
  clusterId,
  add: { activeJobs: -1, ...(dispatchedAtMs !== undefined && { waitingJobs: -1 }) },
})

function endSteps(job: JobRecord, end: JobEnd, { atMs = now() }: Occasion): WriteItem[] {
  const isDispatched = job.dispatchedAtMs !== undefined
  const change = {
    set: { ...end, ...keys.jobStatusIndexKey(job, end.status), completedAtMs: atMs },
    remove: ['duepk', 'duesk'],
  }
  const asRead = {
    status: { is: 'Queued' },
    dispatchedAtMs: isDispatched ? ({ present: true } as const) : ({ absent: true } as const),
  }
  return [
    patch(keys.job(job.organisationId, job.id), change, asRead),
    ...(isDispatched ? [remove(keys.inbox(job.clusterId, job.id))] : []),
  ]
}

/** Requests cancellation of a running job by its relay; returns whether the job was unchanged. One transaction. */
export async function requestCancel(actor: Actor, job: JobRecord, occasion: Occasion = {}): Promise<boolean> {
  if (job.cancelRequestedAtMs === undefined) {
    const refusal = await commit(actor, {
      writes: [stopStep(job, occasion)],
      ...kept(occasion),
      audit: { action: 'job.cancel', resource: job.id },
    })
    if (refusal) return false
  }
  await notifyRelay(job.clusterId)
  return true
}

/** Requests cancellation of many jobs of a cancelled batch, all or none. One transaction. */
export async function requestCancelAll(jobs: readonly JobRecord[]): Promise<boolean> {
  if (await transact(jobs.map((job) => stopStep(job)))) return false
  await Promise.all([...new Set(jobs.map(({ clusterId }) => clusterId))].map(notifyRelay))
  return true
}

const stopStep = (job: JobRecord, { atMs = now() }: Occasion = {}): WriteItem => {
  const set = { cancelRequestedAtMs: atMs, ...keys.due(job.id, now() + cancelConfirmMs) }
  const isRunning = { status: { is: 'Running' }, cancelRequestedAtMs: { absent: true } } as const
  return patch(keys.job(job.organisationId, job.id), { set }, isRunning)
}
