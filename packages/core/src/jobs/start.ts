import { system } from '../caller.ts'
import * as keys from '../db/keys.ts'
import { getMany, patch } from '../db/table.ts'
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
 * Returns no effects if the start is already recorded. Callers must remove `isStartPending` in the same transaction.
 */
export function effectsOfStart(job: StartedJob) {
  if (!job.isStartPending) return { events: [], transitions: [] }
  const data = { ...jobEventData(job), relayId: job.relayId ?? '' }
  return {
    events: [{ name: 'job.started' as const, subject: job.id, data, atMs: job.startedAtMs }],
    transitions: [transitionOf(job, 'Queued', 'Running')],
  }
}

/** Has no effect if the start is recorded concurrently. */
export async function recordStart(job: JobRecord): Promise<void> {
  if (job.status !== 'Running' || !job.isStartPending) return
  const isPending = { status: { is: 'Running' }, leaseId: { is: job.leaseId }, isStartPending: { is: true } } as const
  await commit(system(job.organisationId), {
    writes: [patch(keys.job(job.organisationId, job.id), { remove: ['isStartPending'] }, isPending)],
    ...effectsOfStart(job),
  })
}

export async function recordStarts(organisationId: string, jobIds: readonly string[]): Promise<void> {
  const items = await getMany(jobIds.map((id) => keys.job(organisationId, id)))
  const jobs = items.map(parseRelayed).filter((job) => job !== undefined)
  await Promise.all(jobs.map(recordStart))
}
