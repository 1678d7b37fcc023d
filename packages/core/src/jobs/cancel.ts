import { type Actor } from '../caller.ts'
import { commit } from '../outbox/commit.ts'
import { now } from '../clock.ts'
import { counterSteps } from '../clusters/counters.ts'
import * as keys from '../db/keys.ts'
import { patch, remove, type Step } from '../db/table.ts'
import { transact } from '../db/transact.ts'
import { type JobEnd, type JobRow, toldOfEnd } from './record.ts'
import { ring } from '../lib/relay-notify.ts'

/** Ends that nobody claims, and requests to stop: of one job, or of many of one organisation at once. */

/** A running job that was asked to stop and is not confirmed stopped ends after this long (D25). */
export const cancelConfirmMs = 60_000
/** A job takes up to three writes of the 100 that a transaction holds. */
export const jobsAtOnce = 32

/** When something happens, and what a caller who may repeat the request is answered. */
interface Occasion {
  atMs?: number
  answer?: unknown
}

const kept = ({ answer }: Occasion) => (answer === undefined ? {} : { answer })

/** Ends jobs that no relay has claimed, all or none; answers whether all were still as read. One transaction. */
export async function endQueued(
  actor: Actor,
  jobs: readonly JobRow[],
  end: JobEnd,
  occasion: Occasion = {},
): Promise<boolean> {
  const counters = counterSteps(actor.organisationId, jobs.map(counterOfEnd))
  const told = jobs.map((job) => toldOfEnd(job, end))
  const refusal = await commit(actor, {
    steps: [...jobs.flatMap((job) => endSteps(job, end, occasion)), ...counters.map(({ step }) => step)],
    ...kept(occasion),
    ...(actor.kind === 'user' && { audit: { action: 'job.cancel', resource: jobs[0]?.id ?? '' } }),
    events: told.flatMap(({ events }) => events),
    moves: told.flatMap(({ moves }) => moves),
  })
  return refusal === undefined
}

const counterOfEnd = ({ clusterId, dispatchedAtMs }: JobRow) => ({
  clusterId,
  add: { activeJobs: -1, ...(dispatchedAtMs !== undefined && { waitingJobs: -1 }) },
})

function endSteps(job: JobRow, end: JobEnd, { atMs = now() }: Occasion): Step[] {
  const isDispatched = job.dispatchedAtMs !== undefined
  const change = {
    set: { ...end, ...keys.jobStatusFiling(job, end.status), completedAtMs: atMs },
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
export async function askToStop(actor: Actor, job: JobRow, occasion: Occasion = {}): Promise<boolean> {
  if (job.cancelRequestedAtMs === undefined) {
    const refusal = await commit(actor, {
      steps: [stopStep(job, occasion)],
      ...kept(occasion),
      audit: { action: 'job.cancel', resource: job.id },
    })
    if (refusal) return false
  }
  await ring(job.clusterId)
  return true
}

/** Asks for many jobs at once, all or none, on behalf of somebody who asked for that already. One transaction. */
export async function askAllToStop(jobs: readonly JobRow[]): Promise<boolean> {
  if (await transact(jobs.map((job) => stopStep(job)))) return false
  await Promise.all([...new Set(jobs.map(({ clusterId }) => clusterId))].map(ring))
  return true
}

const stopStep = (job: JobRow, { atMs = now() }: Occasion = {}): Step => {
  const set = { cancelRequestedAtMs: atMs, ...keys.due(job.id, now() + cancelConfirmMs) }
  const isRunning = { status: { is: 'Running' }, cancelRequestedAtMs: { absent: true } } as const
  return patch(keys.job(job.organisationId, job.id), { set }, isRunning)
}
