import type { Claim, ClaimRequest } from '@platform/contract/relay'
import type { RelayCaller } from '../caller.ts'
import { iso, isWithin, now, nowSeconds } from '../clock.ts'
import { consumeNonce } from '../clusters/request-nonce.ts'
import { runningSinceMs } from '../clusters/downtime.ts'
import { heartbeatTimeouts } from '../clusters/status.ts'
import { config } from '../config.ts'
import * as keys from '../db/keys.ts'
import { getConsistent, orThrow, patch, remove, tryUpdate } from '../db/table.ts'
import { platformError, validationFailed } from '../error.ts'
import { isId, newId, sha256 } from '../id.ts'
import { failpoint } from '../lib/failpoint.ts'
import { commit } from '../outbox/commit.ts'
import { transitionOf } from '../outbox/record.ts'
import { rereadMs, signStatement, successorsOf } from '../signing/statement-keys.ts'
import { jobEventData, type JobRecord, parsePayload, parseRelayed, payloadText } from './record.ts'

/**
 * A lease expires this long after the relay's last message about the job, but not before a silent cluster is Degraded.
 */
const leaseMs = Math.max(600_000, heartbeatTimeouts(config.PLAT_HEARTBEAT_INTERVAL_SECONDS).degradedMs)
/** A heartbeat renews only leases older than this, so that most heartbeats write nothing. */
const renewAfterMs = 150_000
/** The platform ends a job this long after its time limit if the relay has not. */
const timeoutGraceMs = 60_000
const statementSeconds = 600
const claimKeyLimit = 200

/** Time in which the platform did not run does not count, because relays could not report. */
const countedFrom = (atMs: number): number => Math.max(atMs, runningSinceMs())

export const timeLimitOf = ({ startedAtMs = 0, timeoutSeconds }: Pick<JobRecord, 'startedAtMs' | 'timeoutSeconds'>) =>
  countedFrom(startedAtMs) + timeoutSeconds * 1000

export const cancelTimeOf = ({ cancelRequestedAtMs }: Pick<JobRecord, 'cancelRequestedAtMs'>, confirmMs: number) =>
  cancelRequestedAtMs === undefined ? Number.MAX_SAFE_INTEGER : countedFrom(cancelRequestedAtMs) + confirmMs

export const nextCheckWhileRunning = (
  job: Pick<JobRecord, 'startedAtMs' | 'timeoutSeconds' | 'leaseRenewedAtMs' | 'cancelRequestedAtMs'>,
  confirmMs: number,
): number =>
  Math.min(timeLimitOf(job) + timeoutGraceMs, countedFrom(job.leaseRenewedAtMs) + leaseMs, cancelTimeOf(job, confirmMs))

/** Jobs of other clusters throw `job_not_found`, to hide their existence. A replaced relay throws `relay_revoked`. */
export async function findOwnJob(caller: RelayCaller, jobId: string): Promise<JobRecord> {
  return (await jobAndPayloadOf(caller, jobId)).job
}

async function jobAndPayloadOf(
  { organisationId, clusterId, relayId }: RelayCaller,
  jobId: string,
  withPayload = false,
) {
  if (!isId('job', jobId)) throw platformError('job_not_found')
  const itemKeys = [keys.job(organisationId, jobId), keys.cluster(organisationId, clusterId)]
  if (withPayload) itemKeys.push(keys.payload(organisationId, jobId))
  const [item, cluster, payload] = await getConsistent(itemKeys)
  if (cluster?.['relayId'] !== relayId) throw platformError('relay_revoked')
  const job = parseRelayed(item)
  if (job?.clusterId !== clusterId) throw platformError('job_not_found')
  return { job, payload: payload === undefined ? '' : payloadText(payload) }
}

/**
 * One of several concurrent claims succeeds. After a lost response, the relay may repeat the claim with the same
 * idempotency key.
 */
export async function claim(
  caller: RelayCaller,
  jobId: string,
  claimKey: string | undefined,
  { statementKey }: ClaimRequest = {},
): Promise<Claim> {
  const { organisationId, clusterId, relayId } = caller
  if (claimKey !== undefined && claimKey.length > claimKeyLimit) {
    const message = `must be at most ${claimKeyLimit} characters`
    throw validationFailed([{ in: 'header', path: '/idempotency-key', code: 'too_big', message }])
  }
  const { job, payload } = await jobAndPayloadOf(caller, jobId, true)
  const isRepeat =
    job.status === 'Running' && job.relayId === relayId && claimKey !== undefined && job.claimKey === claimKey
  if (isRepeat && job.leaseId !== undefined) return claimResponse(job, job.leaseId, payload, statementKey)
  // The job stays queued for the relay that is enrolled again.
  if ((await successorsFor(statementKey)) === 'unknown') throw platformError('statement_key_unknown')
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
  const indexKey = keys.jobStatusIndexKey(job, status)
  const change = { set: { status, startedAtMs, relayId, leaseId, claimKey, leaseRenewedAtMs, ...due, ...indexKey } }
  const isCurrentRelay = { relayId: { is: relayId } }
  await commit(caller, {
    writes: [
      orThrow(patch(keys.job(organisationId, jobId), change, { status: { is: 'Queued' } }), 'job_not_claimable'),
      orThrow(
        patch(keys.cluster(organisationId, clusterId), { add: { waitingJobs: -1 } }, isCurrentRelay),
        'relay_revoked',
      ),
      remove(keys.inbox(clusterId, jobId)),
      consumeNonce(caller),
    ],
    events: [{ name: 'job.started', subject: jobId, data: { ...jobEventData(job), relayId } }],
    transitions: [transitionOf(job, 'Queued', 'Running')],
  })
  await failpoint('claim.written')
  return claimResponse(running, leaseId, payload, statementKey)
}

/**
 * The statement binds the job, cluster and payload for ten minutes; the relay verifies it before running the script.
 */
async function claimResponse(
  job: JobRecord,
  leaseId: string,
  payload: string,
  statementKey: string | undefined,
): Promise<Claim> {
  const claims = {
    jobId: job.id,
    clusterId: job.clusterId,
    payloadSha256: sha256(payload),
    iat: nowSeconds(),
    exp: nowSeconds() + statementSeconds,
  }
  // Before signing, because it may read a newer key.
  const successors = await successorsFor(statementKey)
  const statement = await signStatement(claims)
  const leaseExpiresAt = iso(job.leaseRenewedAtMs + leaseMs)
  const statementKeys = successors === 'unknown' || successors.length === 0 ? undefined : successors
  return { leaseId, leaseExpiresAt, statement, statementKeys, payload: parsePayload(payload) }
}

async function successorsFor(statementKey: string | undefined): Promise<string[] | 'unknown'> {
  const successors = statementKey === undefined ? [] : await successorsOf(statementKey)
  if (successors === 'undecided') throw platformError('rate_limited', { retryAfterSeconds: rereadMs / 1000 })
  return successors
}

export async function renewLease(job: JobRecord): Promise<void> {
  if (isWithin(job.leaseRenewedAtMs, renewAfterMs)) return
  const condition = { status: { is: 'Running' }, leaseId: { is: job.leaseId } } as const
  await tryUpdate(keys.job(job.organisationId, job.id), { set: { leaseRenewedAtMs: now() } }, condition)
}

export function checkLease(job: JobRecord, { relayId }: RelayCaller, leaseId: string): void {
  if (job.leaseId !== leaseId || job.relayId !== relayId) throw platformError('lease_not_held')
}
