import { system } from '../caller.ts'
import { commit } from '../outbox/commit.ts'
import { now } from '../clock.ts'
import { type Change, unchangedCondition } from '../db/expression.ts'
import * as keys from '../db/keys.ts'
import { patch } from '../db/table.ts'
import { transact } from '../db/transact.ts'
import { forEachLimit } from '../lib/async.ts'
import { cancelConfirmMs, finishQueued } from './cancel.ts'
import { cancelTimeOf, firstCheckOf, nextCheckWhileRunning, timeLimitOf } from './claim.ts'
import { finishWrites } from './complete.ts'
import { effectsOfEnd } from './recording.ts'
import { resultOf } from './result.ts'
import { isTerminal, type JobRecord } from './record.ts'

const batchConcurrency = 10

/** Ends the job if one of its deadlines has passed, else schedules its next check. */
export async function enforceDeadline(job: JobRecord): Promise<void> {
  if (isTerminal(job)) return changeJob(job, { remove: ['duepk', 'duesk'] })
  const { deadlineMs, times } = deadlineOf(job)
  await (deadlineMs <= now()
    ? endJob(job)
    : changeJob(job, { set: { ...times, ...keys.dueIndexKeys(job.id, deadlineMs) } }))
}

/**
 * Ends the jobs of a batch whose deadline has passed, except those that have a due time of their own. Returns the
 * earliest time at which another deadline can pass, or undefined if no job has one.
 */
export async function enforceDeadlines(jobs: readonly JobRecord[]): Promise<number | undefined> {
  const openJobs = jobs.filter((job) => !isTerminal(job) && !job.isThrottled && job.duesk === undefined)
  let nextMs: number | undefined
  await forEachLimit(batchConcurrency, openJobs, async (job) => {
    const { deadlineMs, times } = deadlineOf(job)
    // A queued job may be claimed at any moment. A job that ends now is checked again, in case of a concurrent change.
    const checkMs = job.status === 'Queued' ? firstCheckOf({ ...job, ...times }, now()) : deadlineMs
    nextMs = Math.min(nextMs ?? checkMs, checkMs)
    if (deadlineMs <= now()) await endJob(job)
    else if (Object.keys(times).length > 0) await changeJob(job, { set: times })
  })
  return nextMs
}

type Times = Partial<Pick<JobRecord, 'expiresAtMs' | 'deliverWithinSeconds' | 'startedAtMs' | 'leaseRenewedAtMs'>> &
  Pick<JobRecord, 'cancelRequestedAtMs'>

/** Also returns corrected times if the stored ones are too late, which happens if the clock was set back. */
function deadlineOf(job: JobRecord): { deadlineMs: number; times: Times } {
  const { status, createdAtMs, expiresAtMs, startedAtMs, leaseRenewedAtMs, cancelRequestedAtMs } = job
  if (status === 'Queued') {
    const { deliverWithinSeconds = (expiresAtMs - createdAtMs) / 1000 } = job
    const latestMs = now() + deliverWithinSeconds * 1000
    const times = expiresAtMs > latestMs ? { expiresAtMs: latestMs, deliverWithinSeconds } : {}
    return { deadlineMs: Math.min(expiresAtMs, latestMs), times }
  }
  const storedTimes = Object.entries({ startedAtMs, leaseRenewedAtMs, cancelRequestedAtMs })
  const times: Times = Object.fromEntries(
    storedTimes.filter(([, ms]) => Number(ms) > now()).map(([name]) => [name, now()]),
  )
  return { deadlineMs: nextCheckWhileRunning({ ...job, ...times }, cancelConfirmMs), times }
}

async function endJob(job: JobRecord): Promise<void> {
  if (job.status === 'Queued') {
    await finishQueued(system(job.organisationId), [job], { status: 'Failed', statusReason: 'delivery_timeout' })
    return
  }
  const end =
    cancelTimeOf(job, cancelConfirmMs) <= now()
      ? ({ status: 'Cancelled', statusReason: 'cancelled_by_user' } as const)
      : ({ status: 'Failed', statusReason: timeLimitOf(job) <= now() ? 'execution_timeout' : 'lease_lost' } as const)
  const result = await resultOf(job, { exitCode: null, nodes: [] })
  await commit(system(job.organisationId), {
    writes: [...finishWrites([{ job, fields: { ...end, ...result.fields } }]), ...result.writes],
    ...effectsOfEnd(job, end),
  })
}

async function changeJob(job: JobRecord, change: Change): Promise<void> {
  const condition = {
    status: { is: job.status },
    leaseRenewedAtMs: unchangedCondition(job.leaseRenewedAtMs || undefined),
    cancelRequestedAtMs: unchangedCondition(job.cancelRequestedAtMs),
  }
  await transact([patch(keys.job(job.organisationId, job.id), change, condition)])
}
