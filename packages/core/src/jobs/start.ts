import { system } from '../caller.ts'
import * as keys from '../db/keys.ts'
import { getMany, patch } from '../db/table.ts'
import { isTransient } from '../error.ts'
import { chunk, coalesced } from '../lib/async.ts'
import { commit } from '../outbox/commit.ts'
import { transitionOf } from '../outbox/record.ts'
import { jobEventData, type JobRecord, parseRelayed } from './record.ts'

/**
 * A claim writes no outbox record, because most jobs end soon: the end of a job then also records its start. The start
 * of a longer job is recorded when the message about its claim arrives, or, if that was lost, with the first renewal of
 * its lease.
 */

type StartedJob = Pick<JobRecord, 'isStartPending' | 'startedAtMs' | 'relayId'> & Parameters<typeof jobEventData>[0]

/**
 * Returns no effects if the start is already recorded. Callers must remove `isStartPending` in the same transaction, or,
 * like `end.ts`, ensure in another way that they record the start once.
 */
export function effectsOfStart(job: StartedJob) {
  if (!job.isStartPending) return { events: [], transitions: [] }
  const data = { ...jobEventData(job), relayId: job.relayId ?? '' }
  return {
    events: [{ name: 'job.started' as const, subject: job.id, data, atMs: job.startedAtMs, actor: relayActor(job) }],
    transitions: [transitionOf(job, 'Queued', 'Running')],
  }
}

export const relayActor = ({ relayId = '' }: Pick<JobRecord, 'relayId'>) => ({ kind: 'relay' as const, id: relayId })

/** Maximum number of starts in one outbox record, so that a run of the projections can process it with others. */
const maxStartsPerRecord = 30

/** Has no effect if the start is recorded concurrently, or if the job has ended. */
export async function recordStart(job: JobRecord): Promise<void> {
  if (needsStartRecord(job)) await commitStarts(job.organisationId, [job])
}

/** Records the starts of jobs that still run. Concurrent calls for one organisation share transactions. */
export const recordStarts = coalesced(recordStartsOf, isTransient)

async function recordStartsOf(organisationId: string, jobIds: readonly string[]): Promise<void> {
  const items = await getMany(jobIds.map((id) => keys.job(organisationId, id)))
  const jobs = items
    .map(parseRelayed)
    .filter((job) => job !== undefined)
    .filter(needsStartRecord)
  for (const part of chunk(jobs, maxStartsPerRecord)) {
    // A job may have ended in between.
    if (!(await commitStarts(organisationId, part)) && part.length > 1) await Promise.all(part.map(recordStart))
  }
}

const needsStartRecord = ({ status, isStartPending }: JobRecord): boolean =>
  status === 'Running' && isStartPending === true

/** Records the starts of all jobs or of none. Returns false if a job was changed concurrently. */
async function commitStarts(organisationId: string, jobs: readonly JobRecord[]): Promise<boolean> {
  const effects = jobs.map(effectsOfStart)
  const failure = await commit(system(organisationId), {
    writes: jobs.map(({ id, leaseId }) => {
      const isPending = { status: { is: 'Running' }, leaseId: { is: leaseId }, isStartPending: { is: true } } as const
      return patch(keys.job(organisationId, id), { remove: ['isStartPending'] }, isPending)
    }),
    events: effects.flatMap(({ events }) => events),
    transitions: effects.flatMap(({ transitions }) => transitions),
  })
  return failure === undefined
}
