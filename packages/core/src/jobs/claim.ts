import type { Claim, ClaimRequest, Heartbeat, HeartbeatResponse } from '@platform/contract/relay'
import { enqueueRecording } from '../aws/queues.ts'
import type { RelayCaller } from '../caller.ts'
import { iso, isWithin, now, nowSeconds } from '../clock.ts'
import { runningSinceMs } from '../clusters/downtime.ts'
import type { ClusterRecord } from '../clusters/record.ts'
import { heartbeatTimeouts } from '../clusters/status.ts'
import { config } from '../config.ts'
import * as keys from '../db/keys.ts'
import { get, getConsistent, getMany, orThrow, patch, tryUpdate } from '../db/table.ts'
import { transact } from '../db/transact.ts'
import { platformError, validationFailedError } from '../error.ts'
import { isId, newId, sha256 } from '../id.ts'
import { failpoint } from '../lib/failpoint.ts'
import { minRereadMs, signStatement, successorsOf } from '../signing/statement-keys.ts'
import { inboxExitChange, leaveInbox, listedIn, waitingUnlisted } from './inbox.ts'
import { canRecordLater, isLate, listedBatchJobsOf, enqueueOrRecord, recordStart } from './recording.ts'
import { type JobRecord, parsePayload, parseRelayed, payloadText } from './record.ts'

const longestIntervalSeconds = Math.max(config.PLAT_HEARTBEAT_INTERVAL_SECONDS, config.PLAT_CHANNEL_HEARTBEAT_SECONDS)
/**
 * A lease expires this long after its last renewal. The time is at least that after which a silent cluster is Degraded.
 */
const leaseMs = Math.max(600_000, heartbeatTimeouts(longestIntervalSeconds).degradedMs)
/** A heartbeat renews a lease only if its last renewal is older than this, which saves writes. */
const renewAfterMs = 150_000
/** The platform ends a job this long after its time limit if the relay has not. */
const timeoutGraceMs = 60_000
const statementSeconds = 600
const maxClaimKeyLength = 200
/** Limits of one heartbeat, whose response is larger than the payloads and must fit into 6 MiB. */
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
 * Returns when the sweep must check a queued job: at its delivery timeout, or earlier if a job that is claimed at once
 * must be checked earlier.
 */
export const firstCheckOf = (
  { expiresAtMs, timeoutSeconds }: Pick<JobRecord, 'expiresAtMs' | 'timeoutSeconds'>,
  fromMs: number,
): number => Math.min(expiresAtMs, fromMs + Math.min(timeoutSeconds * 1000 + timeoutGraceMs, leaseMs))

/**
 * Throws `job_not_found` for jobs of other clusters, to hide their existence, and `relay_revoked` if the relay is not
 * the current one of its cluster.
 */
export const findOwnJob = async (caller: RelayCaller, jobId: string): Promise<JobRecord> =>
  (await findOwnJobAndList(caller, jobId)).job

/** Like `findOwnJob`; also returns the ids of the cluster's listed jobs of batches. */
export async function findOwnJobAndList(caller: RelayCaller, jobId: string) {
  if (!isId('job', jobId)) throw platformError('job_not_found')
  const { jobs, listedBatchJobIds } = await findOwnJobs(caller, [jobId])
  const [job] = jobs
  if (job === undefined) throw platformError('job_not_found')
  return { job, listedBatchJobIds }
}

/** Returns undefined for each job for which `findOwnJob` throws `job_not_found`. Throws `relay_revoked` like it. */
export async function findOwnJobs(caller: RelayCaller, jobIds: readonly string[]) {
  const itemKeys = jobIds.map((id) => keys.job(caller.organisationId, id))
  const { isPending, listedBatchJobIds, items } = await readAsRelay(caller, itemKeys)
  // A relay that waits for approval has no jobs.
  const isOwn = (job: JobRecord | undefined) => !isPending && job?.clusterId === caller.clusterId
  return { jobs: items.map(parseRelayed).map((job) => (isOwn(job) ? job : undefined)), listedBatchJobIds }
}

async function readAsRelay({ organisationId, clusterId, relayId }: RelayCaller, itemKeys: readonly keys.Key[]) {
  const [cluster, ...items] = await getConsistent([keys.cluster(organisationId, clusterId), ...itemKeys])
  const isPending = cluster?.['pendingRelayId'] === relayId
  if (!isPending && cluster?.['relayId'] !== relayId) throw platformError('relay_revoked')
  return { isPending, items, listedBatchJobIds: listedBatchJobsOf(cluster) }
}

async function jobAndPayloadOf(caller: RelayCaller, jobId: string) {
  const { organisationId, clusterId } = caller
  if (!isId('job', jobId)) throw platformError('job_not_found')
  const itemKeys = [keys.job(organisationId, jobId), keys.payload(organisationId, jobId)]
  const { isPending, items } = await readAsRelay(caller, itemKeys)
  const [item, payload] = items
  if (isPending) throw platformError('job_not_claimable')
  const job = parseRelayed(item)
  if (job?.clusterId !== clusterId) throw platformError('job_not_found')
  return { job, payload: payloadText(job, payload) ?? '' }
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
  if (claimKey !== undefined && claimKey.length > maxClaimKeyLength) {
    const message = `must be at most ${maxClaimKeyLength} characters`
    throw validationFailedError([{ in: 'header', path: '/idempotency-key', code: 'too_big', message }])
  }
  const { job, payload } = await jobAndPayloadOf(caller, jobId)
  const isRepeat =
    job.status === 'Running' && job.relayId === relayId && claimKey !== undefined && job.claimKey === claimKey
  if (isRepeat && job.leaseId !== undefined) {
    // The process may have stopped before it sent the message about the first claim.
    if (job.isStartPending) await enqueueClaimed([job])
    return claimResponse(job, job.leaseId, payload, statementKey)
  }
  // An unknown key is rejected before the claim, so that the job stays queued until the relay has been enrolled again.
  if ((await successorsFor(statementKey)) === 'unknown') throw platformError('statement_key_unknown')
  if (!isClaimable(job)) throw platformError('job_not_claimable')

  const start = startOf(job, relayId, claimKey)
  const currentRelayCondition = { relayId: { is: relayId } }
  await transact([
    orThrow(startWrite(start), 'job_not_claimable'),
    orThrow(
      patch(keys.cluster(organisationId, clusterId), inboxExitChange([job]), currentRelayCondition),
      'relay_revoked',
    ),
    ...leaveInbox(job),
  ])
  await enqueueClaimed([start.runningJob])
  return claimResponse(start.runningJob, start.leaseId, payload, statementKey)
}

const isClaimable = ({ status, isThrottled, expiresAtMs }: JobRecord): boolean =>
  status === 'Queued' && !isThrottled && expiresAtMs > now()

function startOf(job: JobRecord, relayId: string, claimKey: string | undefined) {
  const leaseId = newId('lease')
  const startFields = {
    status: 'Running' as const,
    startedAtMs: now(),
    relayId,
    leaseId,
    claimKey,
    leaseRenewedAtMs: now(),
    isStartPending: true as const,
  }
  const runningJob = { ...job, ...startFields }
  const nextCheckMs = nextCheckWhileRunning(runningJob, 0)
  // An existing check that is due by `nextCheckMs` schedules the next check itself.
  const isChecked = job.duesk !== undefined && keys.dueMsOf(job.duesk) <= nextCheckMs
  const isCheckedByBatch = job.batchId !== undefined && job.duesk === undefined
  const dueAttributes = isChecked || isCheckedByBatch ? {} : keys.dueIndexKeys(job.id, nextCheckMs)
  const change = { set: { ...startFields, ...dueAttributes } }
  const condition = { status: { is: 'Queued' }, ...(isChecked && { duesk: { is: job.duesk } }) } as const
  return { runningJob, leaseId, change, condition }
}

type Start = ReturnType<typeof startOf>

const startWrite = ({ runningJob, change, condition }: Start) =>
  patch(keys.job(runningJob.organisationId, runningJob.id), change, condition)

type HeartbeatClaims = NonNullable<HeartbeatResponse['claims']>
type HeartbeatClaimRequest = Pick<Heartbeat, 'freeSlots' | 'statementKey'> & { claimKey: string }

/**
 * Claims the oldest jobs of the inbox. A repeated `claimKey` also returns its earlier claims, until the relay reports
 * the jobs as running or they have ended. `cluster` must be the record that this heartbeat has written, without the
 * listed jobs that the relay reports as running. Returns undefined if the relay must claim the jobs one by one.
 */
export async function claimWaiting(
  caller: RelayCaller,
  cluster: ClusterRecord,
  { claimKey, freeSlots, statementKey }: HeartbeatClaimRequest,
): Promise<{ claims: HeartbeatClaims; moreJobs: boolean } | undefined> {
  const listedJobs = await readListed(caller, cluster)
  const repeatedJobs = listedJobs.flatMap((each) => startedJobsOf(each, caller, claimKey))
  // The process may have stopped before it sent the message about the first claim.
  await enqueueClaimed(repeatedJobs.map(({ runningJob }) => runningJob))
  const claimableJobs = listedJobs.filter(({ job }) => isClaimable(job))
  const waitingCount = claimableJobs.length + Math.max(0, cluster.waitingJobs)
  const limit = Math.min(freeSlots, maxClaims) - repeatedJobs.length
  // Jobs of inbox items are claimed in one transaction. Listed jobs are claimed separately, so a repeated heartbeat may
  // find some of them still claimable.
  const isComplete = repeatedJobs.length > 0 && claimableJobs.length === 0
  const withoutClaims = async () => ({
    claims: await responsesTo(repeatedJobs, statementKey),
    moreJobs: waitingCount > 0,
  })
  if (waitingCount === 0 || limit <= 0 || isComplete) return withoutClaims()
  const successors = statementKey === undefined ? [] : await successorsOf(statementKey)
  if (successors === 'unknown') return withoutClaims()
  if (successors === 'undecided') return repeatedJobs.length > 0 ? withoutClaims() : undefined
  const startedJobs =
    claimableJobs.length > 0
      ? await startListed(caller, fittingJobs(claimableJobs.slice(0, limit)), claimKey)
      : await retryOnce(() => startFromInbox(caller, cluster, limit, claimKey))
  // Jobs or the relay of the cluster changed in between. The next heartbeat reads the inbox again.
  if (startedJobs === 'conflict') return { claims: [], moreJobs: true }
  await failpoint('claim.written')
  await enqueueClaimed(startedJobs.map(({ runningJob }) => runningJob))
  const claims = await responsesTo([...repeatedJobs, ...startedJobs], statementKey)
  // If no job was claimable, for example because all have expired, another heartbeat would not find one either.
  const hasClaimed = startedJobs.length > 0 || claimableJobs.length > 0
  return { claims, moreJobs: hasClaimed && waitingCount > startedJobs.length }
}

const idOf = ({ id }: JobRecord): string => id

/** The delay is shorter for listed jobs of batches, because the consumer may also record their ends. */
async function enqueueClaimed(jobs: readonly JobRecord[]): Promise<void> {
  const hasLongDelay = !jobs.some(({ isListed, batchId }) => isListed && batchId !== undefined)
  if (jobs[0] !== undefined) await enqueueOrRecord(jobs[0].organisationId, jobs.map(idOf), { hasLongDelay })
}

type Waiting = { job: JobRecord; payload: string }
type Started = { runningJob: JobRecord; leaseId: string; payload: string }

/** A relay with a control channel might send its next heartbeat only minutes later. */
async function retryOnce(start: () => Promise<Started[] | 'conflict'>): Promise<Started[] | 'conflict'> {
  const startedJobs = await start()
  return startedJobs === 'conflict' ? start() : startedJobs
}

/** Also enqueues the ends of listed jobs that are not recorded in time. */
async function readListed(caller: RelayCaller, cluster: ClusterRecord): Promise<Waiting[]> {
  const listedJobs = await jobsWithPayload(caller, listedIn(cluster))
  const jobs = listedJobs.map(({ job }) => job)
  const lateJobs = jobs.filter((job) => canRecordLater(job, cluster.listedBatchJobs) && isLate(job))
  // A later heartbeat tries again.
  if (lateJobs.length > 0) await enqueueRecording(caller.organisationId, lateJobs.map(idOf), { hasLongDelay: false })
  return listedJobs
}

/** Returns at most `limit` ids, oldest first, for a relay that claims each job with a separate request. */
export async function waitingIn(caller: RelayCaller, cluster: ClusterRecord, limit: number): Promise<string[]> {
  const listedJobs = await readListed(caller, cluster)
  const claimableJobs = listedJobs.filter(({ job }) => isClaimable(job)).slice(0, limit)
  const listedIds = claimableJobs.map(({ job }) => job.id)
  if (cluster.waitingJobs <= 0 || listedIds.length === limit) return listedIds
  return [...listedIds, ...(await waitingUnlisted(cluster, limit - listedIds.length))]
}

/** Writes only the jobs' own records, which decide whether a job waits. Omits jobs that `claimKey` has not claimed. */
async function startListed(caller: RelayCaller, waitingJobs: readonly Waiting[], claimKey: string): Promise<Started[]> {
  const startedJobs = waitingJobs.map(async ({ job, payload }) => {
    const { change, condition } = startOf(job, caller.relayId, claimKey)
    const key = keys.job(job.organisationId, job.id)
    // The condition fails after a lost response, and if a concurrent repetition of the heartbeat has claimed the job.
    const currentJob = parseRelayed((await tryUpdate(key, change, condition)) ?? (await get(key)))
    return currentJob === undefined ? [] : startedJobsOf({ job: currentJob, payload }, caller, claimKey)
  })
  return (await Promise.all(startedJobs)).flat()
}

/** Claims the jobs in one transaction, because the record of the cluster counts them. */
async function startFromInbox(
  caller: RelayCaller,
  cluster: ClusterRecord,
  limit: number,
  claimKey: string,
): Promise<Started[] | 'conflict'> {
  const waitingJobs = await jobsWithPayload(caller, await waitingUnlisted(cluster, limit))
  const claimableJobs = fittingJobs(waitingJobs.filter(({ job }) => job.clusterId === cluster.id && isClaimable(job)))
  if (claimableJobs.length === 0) return []
  const starts = claimableJobs.map(({ job, payload }) => ({ ...startOf(job, caller.relayId, claimKey), payload }))
  const jobs = starts.map(({ runningJob }) => runningJob)
  const { add } = inboxExitChange(jobs)
  const failure = await transact([
    ...starts.map(startWrite),
    ...jobs.flatMap(leaveInbox),
    patch(
      keys.cluster(caller.organisationId, cluster.id),
      { add: { ...add, listedJobs: new Set(jobs.map(({ id }) => id)) } },
      { relayId: { is: caller.relayId } },
    ),
  ])
  return failure === undefined ? starts : 'conflict'
}

function startedJobsOf({ job, payload }: Waiting, { relayId }: RelayCaller, claimKey: string): Started[] {
  const isSame = job.status === 'Running' && job.relayId === relayId && job.claimKey === claimKey
  return isSame && job.leaseId !== undefined ? [{ runningJob: job, leaseId: job.leaseId, payload }] : []
}

async function jobsWithPayload({ organisationId }: RelayCaller, jobIds: readonly string[]) {
  const items = await getMany(jobIds.map((id) => keys.job(organisationId, id)))
  const jobs = items.map(parseRelayed).filter((job) => job !== undefined)
  const separateIds = jobs.filter(({ payload }) => payload === undefined).map(({ id }) => id)
  const payloadItems = await getMany(separateIds.map((id) => keys.payload(organisationId, id)))
  return jobs.flatMap((job) => {
    const payload = payloadText(job, payloadItems[separateIds.indexOf(job.id)])
    return payload === undefined ? [] : [{ job, payload }]
  })
}

function fittingJobs<Job extends { payload: string }>(jobs: readonly Job[]): Job[] {
  let sizeBytes = 0
  return jobs.filter(
    ({ payload }, index) => (sizeBytes += Buffer.byteLength(payload)) <= maxPayloadBytes || index === 0,
  )
}

const responsesTo = (startedJobs: readonly Started[], statementKey: string | undefined): Promise<HeartbeatClaims> =>
  Promise.all(
    startedJobs.map(async ({ runningJob, leaseId, payload }) => {
      // The response to the heartbeat already contains the keys.
      const { statementKeys: _, ...response } = await claimResponse(runningJob, leaseId, payload, statementKey)
      return { jobId: runningJob.id, ...response }
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
  // This call may read a newer key, so it comes before `signStatement`, which then uses that key.
  const successors = await successorsFor(statementKey)
  const statement = await signStatement(claims)
  const leaseExpiresAt = iso(job.leaseRenewedAtMs + leaseMs)
  const statementKeys = successors === 'unknown' || successors.length === 0 ? undefined : successors
  return { leaseId, leaseExpiresAt, statement, statementKeys, payload: parsePayload(payload) }
}

async function successorsFor(statementKey: string | undefined): Promise<string[] | 'unknown'> {
  const successors = statementKey === undefined ? [] : await successorsOf(statementKey)
  if (successors === 'undecided') throw platformError('rate_limited', { retryAfterSeconds: minRereadMs / 1000 })
  return successors
}

export async function renewLease(job: JobRecord): Promise<void> {
  if (isWithin(job.leaseRenewedAtMs, renewAfterMs)) return
  await recordStart(job)
  const condition = { status: { is: 'Running' }, leaseId: { is: job.leaseId } } as const
  await tryUpdate(keys.job(job.organisationId, job.id), { set: { leaseRenewedAtMs: now() } }, condition)
}

export const holdsLease = (job: JobRecord, { relayId }: RelayCaller, leaseId: string): boolean =>
  job.leaseId === leaseId && job.relayId === relayId

export function checkLease(job: JobRecord, caller: RelayCaller, leaseId: string): void {
  if (!holdsLease(job, caller, leaseId)) throw platformError('lease_not_held')
}
