import type { Completion, CompletionResponse, Outcome } from '@platform/contract/relay'
import type { RelayCaller } from '../caller.ts'
import { now } from '../clock.ts'
import { unchangedCondition } from '../db/expression.ts'
import { addEnded } from '../clusters/counters.ts'
import * as keys from '../db/keys.ts'
import { patch } from '../db/table.ts'
import { transact } from '../db/transact.ts'
import { platformError, storeContentionError } from '../error.ts'
import { sha256 } from '../id.ts'
import { failpoint } from '../lib/failpoint.ts'
import { commit } from '../outbox/commit.ts'
import { findOwnJob, checkLease } from './claim.ts'
import { deleteMiddle, endOf as endOfChunks, outputFieldsAfter, lastChunks, outputWrites } from './output.ts'
import { isTerminal, type JobEnd, type JobRecord, effectsOfFinish } from './record.ts'
import { effectsOfStart } from './start.ts'
import { exitCodeOf, resultOf } from './result.ts'

const maxAttempts = 4

/** Idempotent. If the job ended differently, stores the first such report and throws `job_already_finished`. */
export async function complete(caller: RelayCaller, jobId: string, report: Completion): Promise<CompletionResponse> {
  const reportText = JSON.stringify([report.leaseId, report.outcome, report.exitCode, report.nodes])
  // 128 bits suffice to recognise a repeat.
  const completion = Buffer.from(sha256(reportText), 'hex').subarray(0, 16).toString('base64url')
  for (let attempt = 0; attempt < maxAttempts; attempt++) {
    const job = await findOwnJob(caller, jobId)
    checkLease(job, caller, report.leaseId)
    if (isTerminal(job)) return respondToRepeat(job, report, completion)
    const end = endOf(report, job)
    const chunks = lastChunks(job, report.output)
    const result = await resultOf(job, report, chunks)
    const failure = await commit(caller, {
      writes: [
        ...finishWrites(job, { ...end, completion, ...outputFieldsAfter(job, chunks), ...result.fields }),
        ...(result.hasOutput ? [] : outputWrites(job, chunks)),
        ...result.writes,
      ],
      ...effectsOfStartAndFinish(job, { ...end, exitCode: exitCodeOf(report.nodes, report.exitCode) }),
    })
    if (failure !== undefined) continue
    await failpoint('complete.written')
    if (chunks.length > 0) await deleteMiddle(job, endOfChunks(chunks))
    return { jobId, status: end.status }
  }
  throw storeContentionError()
}

const failureReasons = {
  timed_out: 'execution_timeout',
  rejected: 'relay_rejected',
  interrupted: 'interrupted',
  // The relay cancelled the job without a request by a user.
  cancelled: 'interrupted',
} as const satisfies Partial<Record<Outcome, JobRecord['statusReason']>>

function endOf({ outcome, exitCode, nodes }: Completion, job: JobRecord) {
  const isCancelled = outcome === 'cancelled' && job.cancelRequestedAtMs !== undefined
  if (isCancelled) return { status: 'Cancelled', statusReason: 'cancelled_by_user' } as const
  if (outcome !== 'exited') return { status: 'Failed', statusReason: failureReasons[outcome] } as const
  const isSuccess = exitCodeOf(nodes, exitCode) === 0
  return isSuccess ? ({ status: 'Completed' } as const) : ({ status: 'Failed', statusReason: 'exit_nonzero' } as const)
}

/** Returns the effects of `finishWrites`, including those of a start that is not yet recorded. */
export function effectsOfStartAndFinish(job: JobRecord, end: JobEnd) {
  const [start, finish] = [effectsOfStart(job), effectsOfFinish(job, end)]
  return {
    events: [...start.events, ...finish.events],
    transitions: [...start.transitions, ...finish.transitions],
  }
}

export const finishWrites = (
  job: JobRecord,
  end: Pick<JobRecord, 'status' | 'statusReason' | 'completion'> & Partial<JobRecord>,
) => [
  patch(
    keys.job(job.organisationId, job.id),
    {
      set: { ...end, ...keys.jobStatusIndexKey(job, end.status), completedAtMs: now() },
      remove: ['duepk', 'duesk', 'claimKey', 'leaseRenewedAtMs', 'outputPaidAtMs', 'isStartPending'],
    },
    // `outputBytes` has changed if output arrived since the job was read; the result must include the output.
    {
      status: { is: 'Running' },
      leaseId: { is: job.leaseId },
      isStartPending: unchangedCondition(job.isStartPending),
      outputBytes: unchangedCondition(job.outputBytes || undefined),
    },
  ),
  patch(keys.cluster(job.organisationId, job.clusterId), {
    add: { activeJobs: -1, ...addEnded(end.status) },
    drop: { listedJobs: new Set([job.id]) },
  }),
]

async function respondToRepeat(job: JobRecord, report: Completion, completion: string): Promise<CompletionResponse> {
  if (job.completion === completion && job.status !== 'Queued' && job.status !== 'Running') {
    return { jobId: job.id, status: job.status }
  }
  if (job.lateResult === undefined) {
    const lateResult = { outcome: report.outcome, exitCode: report.exitCode, reportedAtMs: now() }
    await transact([
      patch(keys.job(job.organisationId, job.id), { set: { lateResult } }, { lateResult: { absent: true } }),
    ])
  }
  throw platformError('job_already_finished')
}
