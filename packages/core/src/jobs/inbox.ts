import { listingCondition, removalFromLists } from '../clusters/counters.ts'
import type { ClusterRecord } from '../clusters/record.ts'
import type { Change, Condition } from '../db/expression.ts'
import * as keys from '../db/keys.ts'
import { create, query, remove, type WriteItem } from '../db/table.ts'
import type { JobRecord } from './record.ts'

/**
 * The inbox lists the jobs that wait for a cluster's relay. The first few jobs are listed in the cluster's record,
 * which their transactions write anyway, and all others in items, which the record counts as `waitingJobs`.
 *
 * A claim by a heartbeat lists the job or leaves it listed, so that the next heartbeat finds it if the response was
 * lost. The end of the job, or a heartbeat that reports the job as running, removes the job from the list. Listed jobs
 * of batches are in a second list, and stay there until their end is recorded (`recording.ts`). A listed job may
 * therefore be running or have ended: only its own record decides whether it waits.
 */

type WaitingJob = Pick<JobRecord, 'id' | 'clusterId' | 'isListed'>

export const inboxEntryCounts = { waitingJobs: 1 }
export const enterInbox = ({ clusterId, id }: WaitingJob): WriteItem => create(keys.inbox(clusterId, id), {})

export const inboxListing = (jobId: string): { add: NonNullable<Change['add']>; condition: Condition } => ({
  add: { listedJobs: new Set([jobId]) },
  condition: listingCondition,
})

export function inboxExitChange(jobs: readonly WaitingJob[]): {
  add: { waitingJobs?: number }
  drop: Record<string, ReadonlySet<string>>
} {
  const listedIds = jobs.filter(({ isListed }) => isListed).map(({ id }) => id)
  const otherCount = jobs.length - listedIds.length
  return {
    add: otherCount === 0 ? {} : { waitingJobs: -otherCount },
    drop: listedIds.length === 0 ? {} : removalFromLists(new Set(listedIds)),
  }
}

export const leaveInbox = ({ clusterId, id, isListed }: WaitingJob): WriteItem[] =>
  isListed ? [] : [remove(keys.inbox(clusterId, id))]

/** Returns the ids of all listed jobs, oldest first. */
export const listedIn = ({ listedJobs, listedBatchJobs }: ClusterRecord): string[] =>
  [...listedJobs, ...listedBatchJobs].toSorted()

export const countWaiting = (cluster: ClusterRecord): number =>
  Math.max(0, cluster.waitingJobs) + listedIn(cluster).length

/** Returns the cluster without the listed jobs that the relay reports as running. */
export function withoutReported(cluster: ClusterRecord, runningIds: readonly string[]): ClusterRecord {
  const unreported = (ids: ReadonlySet<string>) => new Set([...ids].filter((id) => !runningIds.includes(id)))
  return {
    ...cluster,
    listedJobs: unreported(cluster.listedJobs),
    listedBatchJobs: unreported(cluster.listedBatchJobs),
  }
}

/** Returns at most `limit` ids of waiting jobs that the record does not list, oldest first. */
export async function waitingUnlisted({ id }: ClusterRecord, limit: number): Promise<string[]> {
  const { items } = await query({ pk: keys.inbox(id, '').pk, limit })
  return items.map((item) => String(item['sk']))
}
