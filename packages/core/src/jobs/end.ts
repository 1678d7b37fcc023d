import { enqueueEnds } from '../aws/queues.ts'
import { system } from '../caller.ts'
import { isWithin } from '../clock.ts'
import { addEnded, counterWrites } from '../clusters/counters.ts'
import * as keys from '../db/keys.ts'
import { getMany, type Item } from '../db/table.ts'
import { isTransient } from '../error.ts'
import { chunk, coalesced } from '../lib/async.ts'
import { commit } from '../outbox/commit.ts'
import { type Effects } from '../outbox/record.ts'
import { effectsOfFinish, type JobRecord, parseRelayed } from './record.ts'
import { effectsOfStart, relayActor } from './start.ts'

/**
 * The successful end of a listed job of a batch writes only the record of the job. A message then records the ends of
 * several jobs in one transaction, which counts them, stores their events in one outbox record, and removes the jobs
 * from the lists of their clusters. The transaction fails for a job that is not listed, so each end is recorded once.
 * If the message is lost, a heartbeat of the cluster or the check of the batch sends another one.
 */

/** Each job needs a write of its cluster and causes two events; a run of the projections processes 60 events. */
const maxEndsPerRecord = 30
/** An end that is not recorded after this time is enqueued again. */
const retryMs = 30_000

type Job = Pick<JobRecord, 'id' | 'status'>

const isCompleted = ({ status }: Job): boolean => status === 'Completed'

/** `listedIds` are the listed jobs of batches of the job's cluster. */
export const canRecordLater = (job: Job, listedIds: ReadonlySet<string>): boolean =>
  isCompleted(job) && listedIds.has(job.id)

/**
 * Records the ends of the jobs, except those that are recorded already. Concurrent calls for one organisation share
 * transactions.
 */
export const recordEnds = coalesced(recordEndsOf, isTransient)

async function recordEndsOf(organisationId: string, jobIds: readonly string[]): Promise<void> {
  const items = await getMany(jobIds.map((id) => keys.job(organisationId, id)))
  const jobs = items.map(parseRelayed).filter((job) => job !== undefined)
  for (const part of chunk(jobs.filter(isCompleted), maxEndsPerRecord)) {
    if ((await commitEnds(organisationId, part)) || part.length === 1) continue
    for (const job of part) await commitEnds(organisationId, [job])
  }
}

/** Records the ends of all jobs or of none. Returns false if the end of one of them is recorded already. */
async function commitEnds(organisationId: string, jobs: readonly JobRecord[]): Promise<boolean> {
  const changes = jobs.map(({ id, clusterId, status }) => {
    return { clusterId, add: { activeJobs: -1, ...addEnded(status) }, unlist: id }
  })
  const effects: Effects[] = jobs.flatMap((job) => [effectsOfStart(job), effectsOfEnd(job)])
  const failure = await commit(system(organisationId), {
    writes: counterWrites(organisationId, changes).map(({ write }) => write),
    events: effects.flatMap(({ events = [] }) => events),
    transitions: effects.flatMap(({ transitions = [] }) => transitions),
  })
  return failure === undefined
}

function effectsOfEnd(job: JobRecord): Effects {
  const { exitCode = null, completedAtMs: atMs } = job
  const { events, transitions } = effectsOfFinish({ ...job, status: 'Running' }, { status: 'Completed', exitCode })
  return { events: events.map((event) => ({ ...event, atMs, actor: relayActor(job) })), transitions }
}

/** Enqueues the ends that should be recorded by now but are not. Returns whether there are any. */
export async function retryLateEnds(
  organisationId: string,
  jobs: readonly JobRecord[],
  listedIds: ReadonlySet<string>,
): Promise<boolean> {
  const lateJobs = jobs.filter((job) => canRecordLater(job, listedIds) && isOld(job))
  for (const part of chunk(lateJobs, maxEndsPerRecord)) {
    await enqueueEnds(
      organisationId,
      part.map(({ id }) => id),
    )
  }
  return lateJobs.length > 0
}

const isOld = ({ completedAtMs = 0 }: JobRecord): boolean => !isWithin(completedAtMs, retryMs)

/** Like `retryLateEnds`, for jobs of any cluster. */
export async function retryLateEndsOf(organisationId: string, jobs: readonly JobRecord[]): Promise<boolean> {
  const clusterIds = new Set(jobs.filter((job) => isCompleted(job) && isOld(job)).map(({ clusterId }) => clusterId))
  const clusters = await getMany([...clusterIds].map((id) => keys.cluster(organisationId, id)))
  const listedIds = new Set(clusters.flatMap((item) => [...parseListed(item)]))
  return retryLateEnds(organisationId, jobs, listedIds)
}

/** Returns the listed jobs of batches of a cluster. */
export const parseListed = (cluster: Item | undefined): ReadonlySet<string> => {
  const ids = cluster?.['listedBatchJobs']
  return ids instanceof Set ? ids : new Set()
}
