import { type Claim, type Completion, type CompletionResponse, type Outcome } from '@platform/contract/relay'
import { CompactSign } from 'jose'
import { type RelayCaller } from '../caller.ts'
import { commit } from '../outbox/commit.ts'
import { iso, now, nowSeconds } from '../clock.ts'
import { heartbeatTimeouts } from '../clusters/status.ts'
import { config } from '../config.ts'
import { unchanged } from '../db/expression.ts'
import * as keys from '../db/keys.ts'
import { getConsistent, orThrow, patch, remove, tryUpdate } from '../db/table.ts'
import { transact } from '../db/transact.ts'
import { failpoint } from '../lib/failpoint.ts'
import { storeContention, platformError, validationFailed } from '../error.ts'
import { isId, newId, sha256 } from '../id.ts'
import { isTerminal, jobEventData, type JobRecord, parsePayload, parseRelayed, effectsOfFinish } from './record.ts'
import { transitionOf } from '../outbox/record.ts'
import { consumeNonce } from '../clusters/request-nonce.ts'
import { exitCodeOf, resultWrite } from './result.ts'
import { signer } from '../signing/keys.ts'

/** What a relay does with a job: claim, run under a lease, complete (D21, D24, D25). */

/** A lease dies this long after the relay last spoke of the job (D25), but no sooner than a relay that beats seldom is late (D20). */
const leaseMs = Math.max(600_000, heartbeatTimeouts(config.PLAT_HEARTBEAT_INTERVAL_SECONDS).degradedMs)
/** Beats renew a lease only when this much of it is gone: one write per several beats. */
const renewAfterMs = 150_000
/** A relay ends a job at its time limit; the server does when the relay has not by this much later. */
const timeoutGraceMs = 60_000
const statementSeconds = 600
const claimKeyLimit = 200
const attempts = 4

/** When the sweep must look at a running job. */
export const nextCheckWhileRunning = (
  job: Pick<JobRecord, 'startedAtMs' | 'timeoutSeconds' | 'leaseRenewedAtMs' | 'cancelRequestedAtMs'>,
  confirmMs: number,
): number =>
  Math.min(
    (job.startedAtMs ?? 0) + job.timeoutSeconds * 1000 + timeoutGraceMs,
    job.leaseRenewedAtMs + leaseMs,
    job.cancelRequestedAtMs === undefined ? Number.MAX_SAFE_INTEGER : job.cancelRequestedAtMs + confirmMs,
  )

/** The job of a relay's own cluster; any other is not found. A relay that was replaced is refused. One call. */
export async function findOwnJob(caller: RelayCaller, jobId: string): Promise<JobRecord> {
  return (await jobAndPayloadOf(caller, jobId)).job
}

async function jobAndPayloadOf(
  { organisationId, clusterId, relayId }: RelayCaller,
  jobId: string,
  withPayload = false,
) {
  if (!isId('job', jobId)) throw platformError('job_not_found')
  const wanted = [keys.job(organisationId, jobId), keys.cluster(organisationId, clusterId)]
  if (withPayload) wanted.push(keys.payload(organisationId, jobId))
  const [item, cluster, payload] = await getConsistent(wanted)
  if (cluster?.['relayId'] !== relayId) throw platformError('unauthenticated')
  const job = parseRelayed(item)
  if (job?.clusterId !== clusterId) throw platformError('job_not_found')
  return { job, payload: String(payload?.['payload']) }
}

/**
 * Leases a waiting job to the relay. Two calls. Of many claims one wins; the winner may repeat its own, by the same
 * idempotency key, because the answer may have been lost.
 */
export async function claim(caller: RelayCaller, jobId: string, claimKey: string | undefined): Promise<Claim> {
  const { organisationId, clusterId, relayId } = caller
  if (claimKey !== undefined && claimKey.length > claimKeyLimit) {
    const message = `must be at most ${claimKeyLimit} characters`
    throw validationFailed([{ in: 'header', path: '/idempotency-key', code: 'too_big', message }])
  }
  const { job, payload } = await jobAndPayloadOf(caller, jobId, true)
  const isRepeat =
    job.status === 'Running' && job.relayId === relayId && claimKey !== undefined && job.claimKey === claimKey
  if (isRepeat && job.leaseId !== undefined) return leased(job, job.leaseId, payload)
  if (job.status !== 'Queued' || job.dispatchedAtMs === undefined || job.expiresAtMs <= now())
    throw platformError('job_not_claimable')

  const leaseId = newId('lease')
  const running = {
    ...job,
    status: 'Running' as const,
    startedAtMs: now(),
    relayId,
    leaseId,
    claimKey,
    leaseRenewedAtMs: now(),
  }
  const { status, startedAtMs, leaseRenewedAtMs } = running
  const due = keys.due(jobId, nextCheckWhileRunning(running, 0))
  const filed = keys.jobStatusIndexKey(job, status)
  const change = { set: { status, startedAtMs, relayId, leaseId, claimKey, leaseRenewedAtMs, ...due, ...filed } }
  const isOurs = { relayId: { is: relayId } }
  await commit(caller, {
    steps: [
      orThrow(patch(keys.job(organisationId, jobId), change, { status: { is: 'Queued' } }), 'job_not_claimable'),
      orThrow(patch(keys.cluster(organisationId, clusterId), { add: { waitingJobs: -1 } }, isOurs), 'unauthenticated'),
      remove(keys.inbox(clusterId, jobId)),
      consumeNonce(caller),
    ],
    events: [{ name: 'job.started', subject: jobId, data: { ...jobEventData(job), relayId } }],
    moves: [transitionOf(job, 'Queued', 'Running')],
  })
  await failpoint('claim.written')
  return leased(running, leaseId, payload)
}

/** The statement binds what the relay verifies: this job, this cluster, this payload, for a short while (D24). */
async function leased(job: JobRecord, leaseId: string, payload: string): Promise<Claim> {
  const { kid, key } = await signer('statement')
  const claims = {
    jobId: job.id,
    clusterId: job.clusterId,
    payloadSha256: sha256(payload),
    iat: nowSeconds(),
    exp: nowSeconds() + statementSeconds,
  }
  const statement = await new CompactSign(new TextEncoder().encode(JSON.stringify(claims)))
    .setProtectedHeader({ alg: 'EdDSA', typ: 'job-statement+jws', kid })
    .sign(key)
  const leaseExpiresAt = iso(job.leaseRenewedAtMs + leaseMs)
  return { leaseId, leaseExpiresAt, statement, payload: parsePayload(payload) }
}

/** Keeps a running job's lease alive; writes only when much of it is gone. May happen twice. */
export async function renewLease(job: JobRecord): Promise<void> {
  if (now() - job.leaseRenewedAtMs < renewAfterMs) return
  const condition = { status: { is: 'Running' }, leaseId: { is: job.leaseId } } as const
  await tryUpdate(keys.job(job.organisationId, job.id), { set: { leaseRenewedAtMs: now() } }, condition)
}

/** Throws unless the relay holds the lease that it names. */
export function checkLease(job: JobRecord, { relayId }: RelayCaller, leaseId: string): void {
  if (job.leaseId !== leaseId || job.relayId !== relayId) throw platformError('lease_not_held')
}

/** Ends a job as its relay reports. Repeating answers the same; after another end the report is kept as `lateResult`. */
export async function complete(caller: RelayCaller, jobId: string, report: Completion): Promise<CompletionResponse> {
  const completion = sha256(JSON.stringify([report.leaseId, report.outcome, report.exitCode, report.nodes]))
  for (let attempt = 0; attempt < attempts; attempt++) {
    const job = await findOwnJob(caller, jobId)
    checkLease(job, caller, report.leaseId)
    if (isTerminal(job)) return afterEnd(caller, job, report, completion)
    const ended = endOf(report, job)
    const refusal = await commit(caller, {
      steps: [...finishWrites(job, { ...ended, completion }), await resultWrite(job, report), consumeNonce(caller)],
      ...effectsOfFinish(job, { ...ended, exitCode: exitCodeOf(report.nodes, report.exitCode) }),
    })
    if (refusal !== undefined) continue
    await failpoint('complete.written')
    return { jobId, status: ended.status }
  }
  throw storeContention()
}

const reasons = {
  timed_out: 'execution_timeout',
  rejected: 'relay_rejected',
  interrupted: 'interrupted',
  // Nobody had asked for it.
  cancelled: 'interrupted',
} as const satisfies Partial<Record<Outcome, JobRecord['statusReason']>>

function endOf({ outcome, exitCode, nodes }: Completion, job: JobRecord) {
  const isCancelled = outcome === 'cancelled' && job.cancelRequestedAtMs !== undefined
  if (isCancelled) return { status: 'Cancelled', statusReason: 'cancelled_by_user' } as const
  if (outcome !== 'exited') return { status: 'Failed', statusReason: reasons[outcome] } as const
  const isSuccess = exitCodeOf(nodes, exitCode) === 0
  return isSuccess ? ({ status: 'Completed' } as const) : ({ status: 'Failed', statusReason: 'exit_nonzero' } as const)
}

/** The steps that end a running job: its row, and the counter that its cluster keeps of it. */
export const finishWrites = (
  job: JobRecord,
  ended: { status: JobRecord['status']; statusReason?: JobRecord['statusReason']; completion?: string },
) => [
  patch(
    keys.job(job.organisationId, job.id),
    {
      set: { ...ended, ...keys.jobStatusIndexKey(job, ended.status), completedAtMs: now() },
      remove: ['duepk', 'duesk'],
    },
    // Output that arrives between reading the job and ending it must not miss the result.
    { status: { is: 'Running' }, leaseId: { is: job.leaseId }, outputBytes: unchanged(job.outputBytes || undefined) },
  ),
  patch(keys.cluster(job.organisationId, job.clusterId), { add: { activeJobs: -1 } }),
]

async function afterEnd(
  caller: RelayCaller,
  job: JobRecord,
  report: Completion,
  completion: string,
): Promise<CompletionResponse> {
  if (job.completion === completion && job.status !== 'Queued' && job.status !== 'Running') {
    return { jobId: job.id, status: job.status }
  }
  if (job.lateResult === undefined) {
    const lateResult = { outcome: report.outcome, exitCode: report.exitCode, reportedAtMs: now() }
    await transact([
      patch(keys.job(job.organisationId, job.id), { set: { lateResult } }, { lateResult: { absent: true } }),
      consumeNonce(caller),
    ])
  }
  throw platformError('job_already_finished')
}
