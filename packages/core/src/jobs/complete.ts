import {
  type Completion,
  type CompletionResponse,
  type CompletionResult,
  type JobCompletion,
  type Outcome,
  rejections,
} from '@platform/contract/relay'
import type { RelayCaller } from '../caller.ts'
import { now } from '../clock.ts'
import { unchangedCondition } from '../db/expression.ts'
import { addEnded, counterWrites, removalFromLists } from '../clusters/counters.ts'
import * as keys from '../db/keys.ts'
import { patch, tryUpdate, type WriteItem } from '../db/table.ts'
import { transact } from '../db/transact.ts'
import { PlatformError, platformError, storeContentionError } from '../error.ts'
import { sha256 } from '../id.ts'
import { failpoint } from '../lib/failpoint.ts'
import { commit } from '../outbox/commit.ts'
import { checkLease, findOwnJobAndList, findOwnJobs, holdsLease } from './claim.ts'
import { deleteMiddle, endOf as endOfChunks, outputFieldsAfter, lastChunks, outputWrites } from './output.ts'
import { isTerminal, type JobRecord } from './record.ts'
import { canRecordLater, effectsOfEnd, enqueueOrRecord } from './recording.ts'
import { exitCodeOf, resultOf } from './result.ts'

const maxAttempts = 4

/** Idempotent. If the job ended differently, stores the first such report and throws `job_already_finished`. */
export async function complete(caller: RelayCaller, jobId: string, report: Completion): Promise<CompletionResponse> {
  for (let attempt = 0; attempt < maxAttempts; attempt++) {
    const { job, listedBatchJobIds } = await findOwnJobAndList(caller, jobId)
    checkLease(job, caller, report.leaseId)
    if (isTerminal(job)) return respondToRepeat(job, report, listedBatchJobIds)
    const finish = await prepareFinish(job, report)
    const isRecordedLater = canRecordLater({ ...job, ...finish.end }, listedBatchJobIds)
    if (await (isRecordedLater ? storeEnd(finish) : commitFinishes(caller, [finish])))
      return { jobId, status: finish.end.status }
  }
  throw storeContentionError()
}

/**
 * Ends the jobs in one transaction. If one of them changes concurrently, ends each job like `complete`. Returns the
 * results in the order of the reports, and stops at a job that changes too often.
 */
export async function completeAll(caller: RelayCaller, reports: readonly JobCompletion[]): Promise<CompletionResult[]> {
  const { jobs } = await findOwnJobs(
    caller,
    reports.map(({ jobId }) => jobId),
  )
  const steps = await Promise.all(reports.map((report, index) => nextStep(caller, jobs[index], report)))
  const finishes = steps.filter((step) => typeof step === 'object')
  const isCommitted = finishes.length > 0 && (await commitFinishes(caller, finishes))
  const results: CompletionResult[] = []
  // One after the other, because their transactions write the record of the same cluster.
  for (const [index, { jobId, ...report }] of reports.entries()) {
    const step = steps[index]
    if (typeof step === 'string') results.push({ jobId, error: step })
    else if (step !== undefined && isCommitted) results.push({ jobId, status: step.end.status })
    else {
      const result = await completeOrReject(caller, jobId, report)
      // Further attempts would take too long. The relay reports the other jobs again.
      if (result === undefined) break
      results.push(result)
    }
  }
  return results
}

/** Returns the error code of a rejected report, how the job ends, or undefined if the job has ended before. */
async function nextStep(caller: RelayCaller, job: JobRecord | undefined, report: Completion) {
  if (job === undefined) return 'job_not_found'
  if (!holdsLease(job, caller, report.leaseId)) return 'lease_not_held'
  if (isTerminal(job)) return undefined
  return (report.output?.seq ?? 0) > job.nextSeq ? 'output_out_of_order' : prepareFinish(job, report)
}

async function completeOrReject(
  caller: RelayCaller,
  jobId: string,
  report: Completion,
): Promise<CompletionResult | undefined> {
  try {
    return await complete(caller, jobId, report)
  } catch (error) {
    const code = error instanceof PlatformError ? error.code : undefined
    // The other jobs of the request may have ended, so the request must not fail.
    if (code === 'conflict') return undefined
    const rejection = rejections.find((each) => each === code)
    if (rejection === undefined) throw error
    return { jobId, error: rejection }
  }
}

type PreparedFinish = Awaited<ReturnType<typeof prepareFinish>>

async function prepareFinish(job: JobRecord, report: Completion) {
  const chunks = lastChunks(job, report.output)
  const result = await resultOf(job, report, chunks)
  const exitCode = exitCodeOf(report.nodes, report.exitCode)
  const end = endOf(report, job)
  const fields = { ...end, completion: hashOf(report), ...outputFieldsAfter(job, chunks), ...result.fields }
  const writes = [...(result.hasOutput ? [] : outputWrites(job, chunks)), ...result.writes]
  return { job, end, chunks, fields, writes, effects: effectsOfEnd(job, { ...end, exitCode }) }
}

/** Ends all of the jobs or none. Returns false if a job was changed concurrently. */
async function commitFinishes(caller: RelayCaller, finishes: readonly PreparedFinish[]): Promise<boolean> {
  const failure = await commit(caller, {
    writes: [...finishWrites(finishes), ...finishes.flatMap(({ writes }) => writes)],
    events: finishes.flatMap(({ effects }) => effects.events),
    transitions: finishes.flatMap(({ effects }) => effects.transitions),
  })
  if (failure !== undefined) return false
  await failpoint('complete.written')
  await deleteMiddles(finishes)
  return true
}

/** Ends the job; its end is recorded later. Returns false if the job was changed concurrently. */
async function storeEnd(finish: PreparedFinish): Promise<boolean> {
  const { key, change, condition } = endWrite({ ...finish, fields: { ...finish.fields, isEndDeferred: true } })
  // A write costs half as much outside of a transaction.
  const isStored =
    finish.writes.length === 0
      ? (await tryUpdate(key, change, condition)) !== undefined
      : (await transact([patch(key, change, condition), ...finish.writes])) === undefined
  if (!isStored) return false
  await failpoint('end.written')
  await deleteMiddles([finish])
  const { organisationId, id, isStartPending } = finish.job
  // If the start is pending, the consumer of the message about the claim also records the end.
  if (!isStartPending) await enqueueOrRecord(organisationId, [id])
  return true
}

async function deleteMiddles(finishes: readonly PreparedFinish[]): Promise<void> {
  const withOutput = finishes.filter(({ chunks }) => chunks.length > 0)
  await Promise.all(withOutput.map(({ job, chunks }) => deleteMiddle(job, endOfChunks(chunks))))
}

/** Identifies a report, to recognise a repeat; 128 bits suffice. */
function hashOf({ leaseId, outcome, exitCode, nodes }: Completion): string {
  const text = JSON.stringify([leaseId, outcome, exitCode, nodes])
  return Buffer.from(sha256(text), 'hex').subarray(0, 16).toString('base64url')
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

type EndFields = Pick<JobRecord, 'status' | 'statusReason' | 'completion'> & Partial<JobRecord>
type Finish = { job: JobRecord; fields: EndFields }

/** Returns the write that ends a running job. It fails if the job was changed concurrently. */
const endWrite = ({ job, fields }: Finish) => ({
  key: keys.job(job.organisationId, job.id),
  change: {
    set: { ...fields, ...keys.jobStatusIndexKey(job, fields.status), completedAtMs: now() },
    remove: ['duepk', 'duesk', 'claimKey', 'leaseRenewedAtMs', 'outputPaidAtMs'],
  },
  // `outputBytes` has changed if output arrived since the job was read; the result must include the output.
  condition: {
    status: { is: 'Running' },
    leaseId: { is: job.leaseId },
    isStartPending: unchangedCondition(job.isStartPending),
    outputBytes: unchangedCondition(job.outputBytes || undefined),
  } as const,
})

/** Also removes `isStartPending`. An end that is recorded later keeps it, because it is recorded with the start. */
function recordedEndWrite(finish: Finish): WriteItem {
  const { key, change, condition } = endWrite(finish)
  return patch(key, { ...change, remove: [...change.remove, 'isStartPending'] }, condition)
}

/** Returns the writes that end running jobs of one organisation. They fail if a job was changed concurrently. */
export const finishWrites = (finishes: readonly Finish[]): WriteItem[] => [
  ...finishes.map(recordedEndWrite),
  ...counterWrites(
    finishes[0]?.job.organisationId ?? '',
    finishes.map(({ job, fields }) => ({
      clusterId: job.clusterId,
      add: { activeJobs: -1, ...addEnded(fields.status) },
      drop: removalFromLists(new Set([job.id])),
    })),
  ).map(({ write }) => write),
]

async function respondToRepeat(
  job: JobRecord,
  report: Completion,
  listedBatchJobIds: ReadonlySet<string>,
): Promise<CompletionResponse> {
  // The process may have stopped before it sent the message.
  if (canRecordLater(job, listedBatchJobIds)) await enqueueOrRecord(job.organisationId, [job.id])
  if (job.completion === hashOf(report) && job.status !== 'Queued' && job.status !== 'Running') {
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
