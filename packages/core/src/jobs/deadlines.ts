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

/** Enforces deadlines of jobs: delivery timeout, lease and cancellation. */

/** Ends an overdue job, or schedules its next check; enqueues an undispatched one again. One transaction. */
export async function enforceDeadline(job: JobRecord): Promise<void> {
  if (job.status === 'Queued') return lookAtQueued(job)
  if (job.status === 'Running') return lookAtRunning(job)
  await refile(job, undefined)
}

async function lookAtQueued(job: JobRecord): Promise<void> {
  if (job.expiresAtMs <= now()) {
    await finishQueued(system(job.organisationId), [job], { status: 'Failed', statusReason: 'delivery_timeout' })
    return
  }
  if (job.dispatchedAtMs !== undefined) return refile(job, job.expiresAtMs)
  await enqueueJob({ organisationId: job.organisationId, jobId: job.id })
  await refile(job, Math.min(now() + outboxRetryMs, job.expiresAtMs))
}

async function lookAtRunning(job: JobRecord): Promise<void> {
  const dueAtMs = nextCheckWhileRunning(job, cancelConfirmMs)
  if (dueAtMs > now()) return refile(job, dueAtMs)
  const isCancelled = job.cancelRequestedAtMs !== undefined && job.cancelRequestedAtMs + cancelConfirmMs <= now()
  const isOutOfTime = (job.startedAtMs ?? 0) + job.timeoutSeconds * 1000 <= now()
  const ended = isCancelled
    ? ({ status: 'Cancelled', statusReason: 'cancelled_by_user' } as const)
    : ({ status: 'Failed', statusReason: isOutOfTime ? 'execution_timeout' : 'lease_lost' } as const)
  await commit(system(job.organisationId), {
    writes: [...finishWrites(job, ended), await resultWrite(job, { exitCode: null, nodes: [] })],
    ...effectsOfFinish(job, ended),
  })
}

async function refile(job: JobRecord, dueAtMs: number | undefined): Promise<void> {
  const change = dueAtMs === undefined ? { remove: ['duepk', 'duesk'] } : { set: keys.due(job.id, dueAtMs) }
  const asRead = {
    status: { is: job.status },
    leaseRenewedAtMs: unchanged(job.leaseRenewedAtMs || undefined),
    cancelRequestedAtMs: unchanged(job.cancelRequestedAtMs),
  }
  await transact([patch(keys.job(job.organisationId, job.id), change, asRead)])
}
