import { system } from '../caller.ts'
import { commit } from '../outbox/commit.ts'
import { now } from '../clock.ts'
import { unchanged } from '../db/expression.ts'
import * as keys from '../db/keys.ts'
import { patch } from '../db/table.ts'
import { transact } from '../db/transact.ts'
import { outboxRetryMs, enqueueJob } from '../aws/queues.ts'
import { cancelConfirmMs, finishQueued } from './cancel.ts'
import { nextCheckWhileRunning } from './claim.ts'
import { finishWrites } from './complete.ts'
import { resultWrite } from './result.ts'
import { type JobRecord, effectsOfFinish } from './record.ts'

/** Also enqueues undispatched jobs again, because their messages may be lost. */
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
  if (job.dispatchedAtMs !== undefined) return reschedule(job, job.expiresAtMs)
  await enqueueJob({ organisationId: job.organisationId, jobId: job.id })
  await reschedule(job, Math.min(now() + outboxRetryMs, job.expiresAtMs))
}

async function checkRunning(job: JobRecord): Promise<void> {
  const dueAtMs = nextCheckWhileRunning(job, cancelConfirmMs)
  if (dueAtMs > now()) return reschedule(job, dueAtMs)
  const isCancelled = job.cancelRequestedAtMs !== undefined && job.cancelRequestedAtMs + cancelConfirmMs <= now()
  const isOutOfTime = (job.startedAtMs ?? 0) + job.timeoutSeconds * 1000 <= now()
  const end = isCancelled
    ? ({ status: 'Cancelled', statusReason: 'cancelled_by_user' } as const)
    : ({ status: 'Failed', statusReason: isOutOfTime ? 'execution_timeout' : 'lease_lost' } as const)
  await commit(system(job.organisationId), {
    writes: [...finishWrites(job, end), await resultWrite(job, { exitCode: null, nodes: [] })],
    ...effectsOfFinish(job, end),
  })
}

async function reschedule(job: JobRecord, dueAtMs: number | undefined): Promise<void> {
  const change = dueAtMs === undefined ? { remove: ['duepk', 'duesk'] } : { set: keys.due(job.id, dueAtMs) }
  const condition = {
    status: { is: job.status },
    leaseRenewedAtMs: unchanged(job.leaseRenewedAtMs || undefined),
    cancelRequestedAtMs: unchanged(job.cancelRequestedAtMs),
  }
  await transact([patch(keys.job(job.organisationId, job.id), change, condition)])
}
