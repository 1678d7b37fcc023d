import { listingCondition } from '../clusters/counters.ts'
import { type ClusterRecord } from '../clusters/record.ts'
import { type Change, type Condition } from '../db/expression.ts'
import * as keys from '../db/keys.ts'
import { create, query, remove, type WriteItem } from '../db/table.ts'
import { type JobRecord } from './record.ts'

/**
 * The inbox lists the jobs that wait for a cluster's relay. The first few jobs are listed in the cluster's record,
 * which their transactions write anyway, and all others in items, which the record counts as `waitingJobs`.
 *
 * A claim by a heartbeat lists the job or leaves it listed, so that the next heartbeat finds it if the response was
 * lost. The end of the job, or a heartbeat that reports the job as running, removes the job from the list. A listed job
 * may therefore be running: only its own record decides whether it waits.
 */

type WaitingJob = Pick<JobRecord, 'id' | 'clusterId' | 'isListed'>

export const inboxEntryCounts = { waitingJobs: 1 }
export const enterInbox = ({ clusterId, id }: WaitingJob): WriteItem => create(keys.inbox(clusterId, id), {})

export const inboxListing = (jobId: string): { add: NonNullable<Change['add']>; condition: Condition } => ({
  add: { listedJobs: new Set([jobId]) },
  condition: listingCondition(1),
})

export function inboxExitChange(jobs: readonly WaitingJob[]): {
  add: { waitingJobs?: number }
  drop: Record<string, Set<string>>
} {
  const listedIds = jobs.filter(({ isListed }) => isListed).map(({ id }) => id)
  const otherCount = jobs.length - listedIds.length
  return {
    add: otherCount === 0 ? {} : { waitingJobs: -otherCount },
    drop: listedIds.length === 0 ? {} : { listedJobs: new Set(listedIds) },
  }
}

export const leaveInbox = ({ clusterId, id, isListed }: WaitingJob): WriteItem[] =>
  isListed ? [] : [remove(keys.inbox(clusterId, id))]

export const countWaiting = ({ waitingJobs, listedJobs }: ClusterRecord): number =>
  Math.max(0, waitingJobs) + listedJobs.size

/** Returns the cluster without the listed jobs that the relay reports as running. */
export function withoutReported(cluster: ClusterRecord, runningIds: readonly string[]): ClusterRecord {
  return { ...cluster, listedJobs: new Set([...cluster.listedJobs].filter((id) => !runningIds.includes(id))) }
}

/** Returns at most `limit` ids: those of listed jobs, oldest first, then those of other waiting jobs, oldest first. */
export async function waitingIn({ id, waitingJobs, listedJobs }: ClusterRecord, limit: number): Promise<string[]> {
  const listedIds = [...listedJobs].toSorted().slice(0, limit)
  if (waitingJobs <= 0 || listedIds.length === limit) return listedIds
  const { items } = await query({ pk: keys.inbox(id, '').pk, limit: limit - listedIds.length })
  return [...listedIds, ...items.map((item) => String(item['sk']))]
}
