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
 * The success of a listed job of a batch, reported in a request of its own, writes only the record of the job. The
 * consumer of a message then records the ends of several jobs in one transaction, which counts them, stores their events
 * in one outbox record, and removes the jobs from the lists of their clusters. The transaction fails if a job is not
 * listed, so each end is recorded once. If the message is lost, a heartbeat of the cluster or the check of the batch
 * sends another one.
 */

/** A record of 30 ends has up to 60 events, the limit of a run of the projections. */
const maxEndsPerRecord = 30
/** An end that is not recorded after this time is enqueued again. */
const retryMs = 30_000

type Job = Pick<JobRecord, 'id' | 'status'>

const isCompleted = ({ status }: Job): boolean => status === 'Completed'

/** `listedBatchJobIds` are the listed jobs of batches of the job's cluster. */
export const canRecordLater = (job: Job, listedBatchJobIds: ReadonlySet<string>): boolean =>
  isCompleted(job) && listedBatchJobIds.has(job.id)

/**
 * Records the ends of the jobs, except those that are recorded already. Concurrent calls for one organisation share
 * transactions.
 */
export const recordEnds = coalesced(recordEndsOf, isTransient)

/** Sends the message whose consumer records the end. If the queue does not accept it, records the end at once. */
export async function recordSoon({ organisationId, id }: JobRecord): Promise<void> {
  if (!(await enqueueEnds(organisationId, [id]))) await recordEnds(organisationId, [id])
}

async function recordEndsOf(organisationId: string, jobIds: readonly string[]): Promise<void> {
  const items = await getMany(jobIds.map((id) => keys.job(organisationId, id)))
  const jobs = items.map(parseRelayed).filter((job) => job !== undefined)
  for (const part of chunk(jobs.filter(isCompleted), maxEndsPerRecord)) {
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

/** Whether the end should be recorded by now, so that a repeated message is unlikely to be a duplicate. */
export const isLate = ({ completedAtMs = 0 }: JobRecord): boolean => !isWithin(completedAtMs, retryMs)

export async function enqueueAllEnds(organisationId: string, jobs: readonly JobRecord[]): Promise<void> {
  for (const part of chunk(jobs, maxEndsPerRecord)) {
    await enqueueEnds(
      organisationId,
      part.map(({ id }) => id),
    )
  }
}

/** Returns the listed jobs of batches of a cluster. */
export const listedBatchJobsOf = (cluster: Item | undefined): ReadonlySet<string> => {
  const ids = cluster?.['listedBatchJobs']
  return ids instanceof Set ? ids : new Set()
}
