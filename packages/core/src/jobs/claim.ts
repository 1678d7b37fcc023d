import type { Claim, ClaimRequest, Heartbeat, HeartbeatResponse } from '@platform/contract/relay'
import type { RelayCaller } from '../caller.ts'
import { iso, isWithin, now, nowSeconds } from '../clock.ts'
import { runningSinceMs } from '../clusters/downtime.ts'
import { type ClusterRecord } from '../clusters/record.ts'
import { heartbeatTimeouts } from '../clusters/status.ts'
import { config } from '../config.ts'
import * as keys from '../db/keys.ts'
import { unchanged } from '../db/expression.ts'
import { getConsistent, orThrow, patch, tryUpdate } from '../db/table.ts'
import { platformError, validationFailed } from '../error.ts'
import { isId, newId, sha256 } from '../id.ts'
import { failpoint } from '../lib/failpoint.ts'
import { commit } from '../outbox/commit.ts'
import { transitionOf } from '../outbox/record.ts'
import { rereadMs, signStatement, successorsOf } from '../signing/statement-keys.ts'
import { countWaiting, leaveInbox, leftInbox, waitingIn } from './inbox.ts'
import { jobEventData, type JobRecord, parsePayload, parseRelayed, payloadText } from './record.ts'

/**
 * A lease expires this long after the relay's last message about the job, but not before a silent cluster is Degraded.
 */
const longestIntervalSeconds = Math.max(config.PLAT_HEARTBEAT_INTERVAL_SECONDS, config.PLAT_CHANNEL_HEARTBEAT_SECONDS)
const leaseMs = Math.max(600_000, heartbeatTimeouts(longestIntervalSeconds).degradedMs)
/** A heartbeat renews only leases older than this, so that most heartbeats write nothing. */
const renewAfterMs = 150_000
/** The platform ends a job this long after its time limit if the relay has not. */
const timeoutGraceMs = 60_000
const statementSeconds = 600
const claimKeyLimit = 200
/** Limits of one heartbeat. The response is larger than the payloads, and a function returns at most 6 MB. */
const maxClaims = 10
const maxPayloadBytes = 1_048_576

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

/**
 * When the sweep first checks a new job: before its delivery timeout, and before the next check of a job claimed at
 * once.
 */
export const firstCheckOf = (
  { expiresAtMs, timeoutSeconds }: Pick<JobRecord, 'expiresAtMs' | 'timeoutSeconds'>,
  fromMs: number,
): number => Math.min(expiresAtMs, fromMs + Math.min(timeoutSeconds * 1000 + timeoutGraceMs, leaseMs))

/**
 * Throws `job_not_found` for jobs of other clusters, to hide their existence, and `relay_revoked` if the relay was
 * replaced.
 */
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
  return { job, payload: withPayload ? (payloadText(job, payload) ?? '') : '' }
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
  // Rejected before the claim, so that the job stays queued until the relay has been enrolled again.
  if ((await successorsFor(statementKey)) === 'unknown') throw platformError('statement_key_unknown')
  if (!isClaimable(job)) throw platformError('job_not_claimable')

  const { running, leaseId, write } = startOf(job, relayId, claimKey)
  const isCurrentRelay = { relayId: { is: relayId } }
  await commit(caller, {
    writes: [
      orThrow(write, 'job_not_claimable'),
      orThrow(patch(keys.cluster(organisationId, clusterId), leftInbox([job]), isCurrentRelay), 'relay_revoked'),
      ...leaveInbox(job),
    ],
    ...effectsOfStart([job], relayId),
    canWait: true,
  })
  return claimResponse(running, leaseId, payload, statementKey)
}

const isClaimable = ({ status, isThrottled, expiresAtMs }: JobRecord): boolean =>
  status === 'Queued' && !isThrottled && expiresAtMs > now()

function startOf(job: JobRecord, relayId: string, claimKey: string | undefined) {
  const leaseId = newId('lease')
  const started = {
    status: 'Running' as const,
    startedAtMs: now(),
    relayId,
    leaseId,
    claimKey,
    leaseRenewedAtMs: now(),
  }
  const running = { ...job, ...started }
  const nextCheckMs = nextCheckWhileRunning(running, 0)
  // An earlier check schedules this one.
  const isChecked = job.duesk !== undefined && keys.dueTimeOf(job.duesk) <= nextCheckMs
  const due = isChecked ? {} : keys.due(job.id, nextCheckMs)
  const set = { ...started, ...due, ...keys.jobStatusIndexKey(job, started.status) }
  const isWaiting = { status: { is: 'Queued' }, ...(isChecked && { duesk: { is: job.duesk } }) } as const
  return {
    running,
    leaseId,
    write: patch(keys.job(job.organisationId, job.id), { set }, isWaiting),
  }
}

const effectsOfStart = (jobs: readonly JobRecord[], relayId: string) => ({
  events: jobs.map((job) => ({
    name: 'job.started' as const,
    subject: job.id,
    data: { ...jobEventData(job), relayId },
  })),
  transitions: jobs.map((job) => transitionOf(job, 'Queued', 'Running')),
})

type HeartbeatClaims = NonNullable<HeartbeatResponse['claims']>
type HeartbeatClaimRequest = Pick<Heartbeat, 'freeSlots' | 'statementKey'> & { claimKey: string }

/**
 * Claims the oldest jobs of the inbox in one transaction. The same key returns the same claims, until they have ended.
 * `cluster` is the record that this heartbeat has written, so the request is neither replayed nor of another relay.
 * Returns undefined if the jobs must be claimed one by one, because one of them was cancelled or claimed in between.
 */
export async function claimWaiting(
  caller: RelayCaller,
  cluster: ClusterRecord,
  { claimKey, freeSlots, statementKey }: HeartbeatClaimRequest,
): Promise<{ claims: HeartbeatClaims; moreJobs: boolean } | undefined> {
  const repeated = cluster.claimKey === claimKey ? await repeatedClaims(caller, cluster, claimKey) : []
  const moreJobs = countWaiting(cluster) > 0
  if (repeated.length > 0) return { claims: await responsesTo(repeated, statementKey), moreJobs }
  if (!moreJobs || freeSlots === 0) return { claims: [], moreJobs }
  const successors = statementKey === undefined ? [] : await successorsOf(statementKey)
  if (successors === 'unknown') return { claims: [], moreJobs }
  if (successors === 'undecided') return undefined
  const waitingIds = await waitingIn(cluster, Math.min(freeSlots, maxClaims))
  const waiting = await jobsWithPayload(caller, waitingIds)
  const claimable = withinLimit(waiting.filter(({ job }) => job.clusterId === cluster.id && isClaimable(job)))
  if (claimable.length === 0) return waitingIds.length > 0 ? undefined : { claims: [], moreJobs }
  const starts = claimable.map(({ job, payload }) => ({ ...startOf(job, caller.relayId, claimKey), payload }))
  const jobIds = starts.map(({ running }) => running.id)
  const failure = await commit(caller, {
    writes: [
      ...starts.map(({ write }) => write),
      ...starts.flatMap(({ running }) => leaveInbox(running)),
      patch(
        keys.cluster(caller.organisationId, cluster.id),
        { ...leftInbox(starts.map(({ running }) => running)), set: { claimKey, claimedJobs: jobIds.join(',') } },
        {
          relayId: { is: caller.relayId },
          claimKey: unchanged(cluster.claimKey),
          claimedJobs: unchanged(cluster.claimedJobs),
        },
      ),
    ],
    ...effectsOfStart(
      starts.map(({ running }) => running),
      caller.relayId,
    ),
    canWait: true,
  })
  if (failure !== undefined) return undefined
  await failpoint('claim.written')
  return { claims: await responsesTo(starts, statementKey), moreJobs: countWaiting(cluster) > starts.length }
}

type Started = { running: JobRecord; leaseId: string; payload: string }

async function repeatedClaims(caller: RelayCaller, cluster: ClusterRecord, claimKey: string): Promise<Started[]> {
  const jobIds = cluster.claimedJobs?.split(',') ?? []
  const claimed = await jobsWithPayload(caller, jobIds)
  return claimed.flatMap(({ job, payload }) => {
    const isSame = job.status === 'Running' && job.relayId === caller.relayId && job.claimKey === claimKey
    return isSame && job.leaseId !== undefined ? [{ running: job, leaseId: job.leaseId, payload }] : []
  })
}

async function jobsWithPayload({ organisationId }: RelayCaller, jobIds: readonly string[]) {
  if (jobIds.length === 0) return []
  const items = await getConsistent([
    ...jobIds.map((id) => keys.job(organisationId, id)),
    ...jobIds.map((id) => keys.payload(organisationId, id)),
  ])
  return jobIds.flatMap((_, index) => {
    const job = parseRelayed(items[index])
    const payload = job && payloadText(job, items[jobIds.length + index])
    return job === undefined || payload === undefined ? [] : [{ job, payload }]
  })
}

function withinLimit<Job extends { payload: string }>(jobs: readonly Job[]): Job[] {
  let sizeBytes = 0
  return jobs.filter(({ payload }, index) => (sizeBytes += payload.length) <= maxPayloadBytes || index === 0)
}

const responsesTo = (started: readonly Started[], statementKey: string | undefined): Promise<HeartbeatClaims> =>
  Promise.all(
    started.map(async ({ running, leaseId, payload }) => {
      // The response to the heartbeat already contains the keys.
      const { statementKeys: _, ...response } = await claimResponse(running, leaseId, payload, statementKey)
      return { jobId: running.id, ...response }
    }),
  )

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
  // Called before `signStatement`, because it may read a newer key.
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
