import { system } from '../caller.ts'
import { commit } from '../outbox/commit.ts'
import { now } from '../clock.ts'
import { sameAs } from '../db/expression.ts'
import * as keys from '../db/keys.ts'
import { patch } from '../db/table.ts'
import { transact } from '../db/transact.ts'
import { announceAgainMs, announceJob } from '../aws/queues.ts'
import { cancelConfirmMs, endQueued } from './cancel.ts'
import { dueWhileRunning, endSteps } from './claim.ts'
import { resultStep } from './result.ts'
import { type JobRow, toldOfEnd } from './record.ts'

/** What becomes of jobs whose time has come: nobody fetched them, nobody renewed their lease, nobody confirmed that they stopped. */

/** Ends a job that is out of time, or files it where the next look is due; announces again one that waits to be dispatched. One transaction. */
export async function lookAtJob(job: JobRow): Promise<void> {
  if (job.status === 'Queued') return lookAtQueued(job)
  if (job.status === 'Running') return lookAtRunning(job)
  await refile(job, undefined)
}

async function lookAtQueued(job: JobRow): Promise<void> {
  if (job.expiresAtMs <= now()) {
    await endQueued(system(job.organisationId), [job], { status: 'Failed', statusReason: 'delivery_timeout' })
    return
  }
  if (job.dispatchedAtMs !== undefined) return refile(job, job.expiresAtMs)
  await announceJob({ organisationId: job.organisationId, jobId: job.id })
  await refile(job, Math.min(now() + announceAgainMs, job.expiresAtMs))
}

async function lookAtRunning(job: JobRow): Promise<void> {
  const dueAtMs = dueWhileRunning(job, cancelConfirmMs)
  if (dueAtMs > now()) return refile(job, dueAtMs)
  const isCancelled = job.cancelRequestedAtMs !== undefined && job.cancelRequestedAtMs + cancelConfirmMs <= now()
  const isOutOfTime = (job.startedAtMs ?? 0) + job.timeoutSeconds * 1000 <= now()
  const ended = isCancelled
    ? ({ status: 'Cancelled', statusReason: 'cancelled_by_user' } as const)
    : ({ status: 'Failed', statusReason: isOutOfTime ? 'execution_timeout' : 'lease_lost' } as const)
  await commit(system(job.organisationId), {
    steps: [...endSteps(job, ended), await resultStep(job, { exitCode: null, nodes: [] })],
    ...toldOfEnd(job, ended),
  })
}

async function refile(job: JobRow, dueAtMs: number | undefined): Promise<void> {
  const change = dueAtMs === undefined ? { remove: ['duepk', 'duesk'] } : { set: keys.due(job.id, dueAtMs) }
  const asRead = {
    status: { is: job.status },
    leaseRenewedAtMs: sameAs(job.leaseRenewedAtMs || undefined),
    cancelRequestedAtMs: sameAs(job.cancelRequestedAtMs),
  }
  await transact([patch(keys.job(job.organisationId, job.id), change, asRead)])
}
