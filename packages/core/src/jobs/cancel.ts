import { type Actor } from '../caller.ts'
import { commit } from '../outbox/commit.ts'
import { now } from '../clock.ts'
import { counterWrites } from '../clusters/counters.ts'
import * as keys from '../db/keys.ts'
import { patch, remove, type WriteItem } from '../db/table.ts'
import { transact } from '../db/transact.ts'
import { type JobEnd, type JobRecord, effectsOfFinish } from './record.ts'
import { notifyRelay } from '../lib/relay-notify.ts'

/** Ends that nobody claims, and requests to stop: of one job, or of many of one organisation at once. */

/** A running job that was asked to stop and is not confirmed stopped ends after this long (D25). */
export const cancelConfirmMs = 60_000
/** A job takes up to three writes of the 100 that a transaction holds. */
export const maxJobsPerTransaction = 32

/** When something happens, and what a caller who may repeat the request is answered. */
interface Occasion {
  atMs?: number
  answer?: unknown
}

const kept = ({ answer }: Occasion) => (answer === undefined ? {} : { answer })

/** Ends jobs that no relay has claimed, all or none; answers whether all were still as read. One transaction. */
export async function finishQueued(
  actor: Actor,
  jobs: readonly JobRecord[],
  end: JobEnd,
  occasion: Occasion = {},
): Promise<boolean> {
  const counters = counterWrites(actor.organisationId, jobs.map(counterOfEnd))
  const told = jobs.map((job) => effectsOfFinish(job, end))
  const refusal = await commit(actor, {
    steps: [...jobs.flatMap((job) => endSteps(job, end, occasion)), ...counters.map(({ step }) => step)],
    ...kept(occasion),
    ...(actor.kind === 'user' && { audit: { action: 'job.cancel', resource: jobs[0]?.id ?? '' } }),
    events: told.flatMap(({ events }) => events),
    moves: told.flatMap(({ moves }) => moves),
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

/** Asks the relay of a running job to stop it; answers whether the job was still as read. One transaction. */
export async function requestCancel(actor: Actor, job: JobRecord, occasion: Occasion = {}): Promise<boolean> {
  if (job.cancelRequestedAtMs === undefined) {
    const refusal = await commit(actor, {
      steps: [stopStep(job, occasion)],
      ...kept(occasion),
      audit: { action: 'job.cancel', resource: job.id },
    })
    if (refusal) return false
  }
  await notifyRelay(job.clusterId)
  return true
}

/** Asks for many jobs at once, all or none, on behalf of somebody who asked for that already. One transaction. */
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
