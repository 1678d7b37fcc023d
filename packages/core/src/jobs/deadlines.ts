import { system } from '../caller.ts'
import { commit } from '../outbox/commit.ts'
import { now } from '../clock.ts'
import { unchanged } from '../db/expression.ts'
import * as keys from '../db/keys.ts'
import { patch } from '../db/table.ts'
import { transact } from '../db/transact.ts'
import { cancelConfirmMs, finishQueued } from './cancel.ts'
import { cancelTimeOf, nextCheckWhileRunning, timeLimitOf } from './claim.ts'
import { effectsOfStartAndFinish, finishWrites } from './complete.ts'
import { resultOf } from './result.ts'
import { type JobRecord } from './record.ts'

export async function enforceDeadline(job: JobRecord): Promise<void> {
  if (job.status === 'Queued') return checkQueued(job)
  if (job.status === 'Running') return checkRunning(job)
  await reschedule(job, undefined)
}

async function checkQueued(job: JobRecord): Promise<void> {
  if (job.expiresAtMs <= now()) {
    await finishQueued(system(job.organisationId), [job], { status: 'Failed', statusReason: 'delivery_timeout' })
    return
  }
  const { deliverWithinSeconds = (job.expiresAtMs - job.createdAtMs) / 1000 } = job
  const latestMs = now() + deliverWithinSeconds * 1000
  // A later time was stored before the clock was set back.
  const times = job.expiresAtMs > latestMs ? { expiresAtMs: latestMs, deliverWithinSeconds } : {}
  const expiresAtMs = Math.min(job.expiresAtMs, latestMs)
  await reschedule(job, expiresAtMs, times)
}

async function checkRunning(job: JobRecord): Promise<void> {
  const { startedAtMs = 0, leaseRenewedAtMs, cancelRequestedAtMs } = job
  // Later times were stored before the clock was set back.
  const times = {
    startedAtMs: Math.min(startedAtMs, now()),
    leaseRenewedAtMs: Math.min(leaseRenewedAtMs, now()),
    ...(cancelRequestedAtMs !== undefined && { cancelRequestedAtMs: Math.min(cancelRequestedAtMs, now()) }),
  }
  const dueAtMs = nextCheckWhileRunning({ ...job, ...times }, cancelConfirmMs)
  if (dueAtMs > now()) return reschedule(job, dueAtMs, times)
  const end =
    cancelTimeOf(job, cancelConfirmMs) <= now()
      ? ({ status: 'Cancelled', statusReason: 'cancelled_by_user' } as const)
      : ({ status: 'Failed', statusReason: timeLimitOf(job) <= now() ? 'execution_timeout' : 'lease_lost' } as const)
  const result = await resultOf(job, { exitCode: null, nodes: [] })
  await commit(system(job.organisationId), {
    writes: [...finishWrites(job, { ...end, ...result.fields }), ...result.writes],
    ...effectsOfStartAndFinish(job, end),
  })
}

async function reschedule(job: JobRecord, dueAtMs: number | undefined, times: Partial<JobRecord> = {}): Promise<void> {
  const change =
    dueAtMs === undefined
      ? { remove: ['duepk', 'duesk'] }
      : { set: { ...times, ...keys.dueIndexKeys(job.id, dueAtMs) } }
  const condition = {
    status: { is: job.status },
    leaseRenewedAtMs: unchanged(job.leaseRenewedAtMs || undefined),
    cancelRequestedAtMs: unchanged(job.cancelRequestedAtMs),
  }
  await transact([patch(keys.job(job.organisationId, job.id), change, condition)])
}
