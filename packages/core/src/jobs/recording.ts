import { enqueueRecording } from '../aws/queues.ts'
import { system } from '../caller.ts'
import { isWithin } from '../clock.ts'
import { addEnded, counterWrites } from '../clusters/counters.ts'
import * as keys from '../db/keys.ts'
import { getMany, type Item, patch } from '../db/table.ts'
import { isTransient } from '../error.ts'
import { chunk, coalesced } from '../lib/async.ts'
import { commit } from '../outbox/commit.ts'
import { type Effects, transitionOf } from '../outbox/record.ts'
import { effectsOfFinish, type JobEnd, jobEventData, type JobRecord, parseRelayed } from './record.ts'

/**
 * Records the starts and ends of jobs after the requests that report them, so that several jobs share a transaction and
 * an outbox record.
 *
 * A claim writes no outbox record, but sends a message with a short delay. If a relay reports the success of a listed
 * job of a batch in a request of its own, the request writes only items of the job. The consumer of the message records
 * the starts of jobs that still run. In another transaction, it records the ends of jobs whose success was reported in
 * this way, with starts that are still pending. This transaction also counts the jobs as completed and removes them
 * from the lists of their clusters.
 *
 * The start of a running job is recorded once, because its transaction requires `isStartPending` and removes it. An
 * end, with a pending start, is recorded once, because its transaction fails unless the list contains the job.
 *
 * If the start was recorded before the job ended, the end sends a message of its own. If a message is lost, a repeated
 * claim or report sends another one. Without a repetition, the first renewal of the lease records a start, and a later
 * heartbeat of the cluster or the check of the batch sends another message about an end.
 */

/** An outbox record about the ends of 30 jobs has up to 60 events, the limit of a run of the projections. */
const maxJobsPerRecord = 30
/** An end that is not recorded after this time is enqueued again. */
const retryMs = 30_000

/**
 * Records the starts and ends of the jobs, except those that are recorded already. Concurrent calls for one
 * organisation share transactions.
 */
export const recordStartsAndEnds = coalesced(recordStartsAndEndsOf, isTransient)

/** Sends the message whose consumer records the jobs. If the queue does not accept it, records them at once. */
export async function enqueueOrRecord(
  organisationId: string,
  jobIds: readonly string[],
  { hasLongDelay = false } = {},
): Promise<void> {
  for (const part of chunk(jobIds, maxJobsPerRecord)) {
    if (!(await enqueueRecording(organisationId, part, { hasLongDelay })))
      await recordStartsAndEnds(organisationId, part)
  }
}

async function recordStartsAndEndsOf(organisationId: string, jobIds: readonly string[]): Promise<void> {
  const jobs = await readJobs(organisationId, jobIds)
  const changedIds = await recordStarts(organisationId, jobs.filter(needsStartRecord))
  // A job that ended after it was read sent no message, because its start was pending.
  const changedJobs = changedIds.length === 0 ? [] : await readJobs(organisationId, changedIds)
  const endedJobs = [...jobs, ...changedJobs].filter(({ isEndDeferred }) => isEndDeferred)
  await recordEnds(organisationId, endedJobs)
}

async function readJobs(organisationId: string, jobIds: readonly string[]): Promise<JobRecord[]> {
  const items = await getMany(jobIds.map((id) => keys.job(organisationId, id)))
  return items.map(parseRelayed).filter((job) => job !== undefined)
}

function startEvent(job: JobRecord) {
  const data = { ...jobEventData(job), relayId: job.relayId ?? '' }
  return { name: 'job.started' as const, subject: job.id, data, atMs: job.startedAtMs, actor: relayActor(job) }
}

/**
 * Returns the effects of the end of a running job, including those of a start that is not yet recorded. Callers must
 * remove `isStartPending` in the same transaction, or ensure in another way that they record the start once.
 */
export function effectsOfEnd(job: JobRecord, end: JobEnd): Required<Pick<Effects, 'events' | 'transitions'>> {
  const { events, transitions } = effectsOfFinish(job, end)
  if (!job.isStartPending) return { events, transitions }
  return {
    events: [startEvent(job), ...events],
    transitions: [transitionOf(job, 'Queued', end.status)],
  }
}

const relayActor = ({ relayId = '' }: Pick<JobRecord, 'relayId'>) => ({ kind: 'relay' as const, id: relayId })

/** Has no effect if the start is recorded concurrently, or if the job has ended. */
export async function recordStart(job: JobRecord): Promise<void> {
  if (needsStartRecord(job)) await commitStarts(job.organisationId, [job])
}

const needsStartRecord = ({ status, isStartPending }: JobRecord): boolean =>
  status === 'Running' && isStartPending === true

/** Returns the ids of the jobs that were changed concurrently, for example because they have ended. */
async function recordStarts(organisationId: string, jobs: readonly JobRecord[]): Promise<string[]> {
  const changedIds: string[] = []
  for (const part of chunk(jobs, maxJobsPerRecord)) {
    if (await commitStarts(organisationId, part)) continue
    for (const job of part) {
      if (part.length === 1 || !(await commitStarts(organisationId, [job]))) changedIds.push(job.id)
    }
  }
  return changedIds
}

/** Records the starts of all jobs or of none. Returns false if a job was changed concurrently. */
async function commitStarts(organisationId: string, jobs: readonly JobRecord[]): Promise<boolean> {
  const failure = await commit(system(organisationId), {
    writes: jobs.map(({ id, leaseId }) => {
      const pendingCondition = {
        status: { is: 'Running' },
        leaseId: { is: leaseId },
        isStartPending: { is: true },
      } as const
      return patch(keys.job(organisationId, id), { remove: ['isStartPending'] }, pendingCondition)
    }),
    events: jobs.map(startEvent),
    transitions: jobs.map((job) => transitionOf(job, 'Queued', 'Running')),
  })
  return failure === undefined
}

type Job = Pick<JobRecord, 'id' | 'status'>

const isCompleted = ({ status }: Job): boolean => status === 'Completed'

/** `listedBatchJobIds` are the listed jobs of batches of the job's cluster. */
export const canRecordLater = (job: Job, listedBatchJobIds: ReadonlySet<string>): boolean =>
  isCompleted(job) && listedBatchJobIds.has(job.id)

async function recordEnds(organisationId: string, jobs: readonly JobRecord[]): Promise<void> {
  for (const part of chunk(jobs, maxJobsPerRecord)) {
    if (await commitEnds(organisationId, part)) continue
    const rest = await unrecordedEnds(organisationId, part)
    if (rest.length === 0 || (await commitEnds(organisationId, rest))) continue
    for (const job of rest) await commitEnds(organisationId, [job])
  }
}

/** Returns those of the jobs whose ends are not recorded. */
export async function unrecordedEnds(organisationId: string, jobs: readonly JobRecord[]): Promise<JobRecord[]> {
  const clusterIds = new Set(jobs.filter(isCompleted).map(({ clusterId }) => clusterId))
  const clusters = await getMany([...clusterIds].map((id) => keys.cluster(organisationId, id)))
  const listedBatchJobIds = new Set(clusters.flatMap((item) => [...listedBatchJobsOf(item)]))
  return jobs.filter((job) => canRecordLater(job, listedBatchJobIds))
}

/** Records the ends of all jobs or of none. Returns false if the end of one of them is recorded already. */
async function commitEnds(organisationId: string, jobs: readonly JobRecord[]): Promise<boolean> {
  const changes = jobs.map(({ id, clusterId, status }) => {
    return { clusterId, add: { activeJobs: -1, ...addEnded(status) }, removeFromList: id }
  })
  const effects = jobs.map(effectsOfSuccess)
  const failure = await commit(system(organisationId), {
    writes: counterWrites(organisationId, changes).map(({ write }) => write),
    events: effects.flatMap(({ events }) => events),
    transitions: effects.flatMap(({ transitions }) => transitions),
  })
  return failure === undefined
}

function effectsOfSuccess(job: JobRecord) {
  const { exitCode = null, completedAtMs } = job
  const { events, transitions } = effectsOfEnd({ ...job, status: 'Running' }, { status: 'Completed', exitCode })
  return {
    events: events.map((event) => ({ atMs: completedAtMs, ...event, actor: relayActor(job) })),
    transitions,
  }
}

/** Whether the end should be recorded by now, so that a repeated message is unlikely to be a duplicate. */
export const isLate = ({ completedAtMs = 0 }: JobRecord): boolean => !isWithin(completedAtMs, retryMs)

/** Returns the listed jobs of batches of a cluster. */
export const listedBatchJobsOf = (cluster: Item | undefined): ReadonlySet<string> => {
  const ids = cluster?.['listedBatchJobs']
  return ids instanceof Set ? ids : new Set()
}
