import type { JobStatus } from '@platform/contract/job'
import type { Condition } from '../db/expression.ts'
import * as keys from '../db/keys.ts'
import { patch, type WriteItem } from '../db/table.ts'

export interface CounterChange {
  clusterId: string
  drop?: Record<string, ReadonlySet<string>>
  /** The id of a job of a batch to list. The write then has the condition of `batchListingCondition`. */
  list?: string
  /** The id of a job to remove from the list of jobs of batches. The write fails if it is not in the list. */
  removeFromList?: string
  lastJobId?: string
  add: Partial<Record<'jobs' | 'activeJobs' | 'waitingJobs' | keyof typeof endedCounters, number>>
}

export const lastJobOf = (jobId: string) => ({ lastJob: jobId.slice('job_'.length) })

/** These numbers limit the size of the cluster record, because each heartbeat writes the record. */
const maxListedJobs = 6
export const maxListedBatchJobs = 3

const noOthersWait: Condition = { waitingJobs: { absentOrAtMost: 0 } }

/** Requires that the list has room for another job, and that no job waits in the inbox. */
export const listingCondition: Condition = { listedJobs: { absentOrSmaller: maxListedJobs }, ...noOthersWait }

/** Requires the same for `count` more jobs of batches. */
const batchListingCondition = (count: number): Condition => ({
  listedBatchJobs: { absentOrSmaller: maxListedBatchJobs - count + 1 },
  ...noOthersWait,
})

/** Returns the change that removes the jobs from both lists. */
export const removalFromLists = (jobIds: ReadonlySet<string>) => ({ listedJobs: jobIds, listedBatchJobs: jobIds })

const endedCounters = { jobsCompleted: 'Completed', jobsFailed: 'Failed', jobsCancelled: 'Cancelled' } as const

export const addEnded = (status: JobStatus): CounterChange['add'] =>
  Object.fromEntries(
    Object.entries(endedCounters).flatMap(([counter, endedStatus]) => (endedStatus === status ? [[counter, 1]] : [])),
  )

export const subtractEnded = (status: JobStatus): CounterChange['add'] => ({
  jobs: -1,
  ...Object.fromEntries(Object.keys(addEnded(status)).map((counter) => [counter, -1])),
})

/** Omits Queued and Running jobs, so the cluster must have no active jobs. */
export const endedJobCounts = (cluster: Record<keyof typeof endedCounters, number>) => ({
  Completed: cluster.jobsCompleted,
  Failed: cluster.jobsFailed,
  Cancelled: cluster.jobsCancelled,
})

interface Sum {
  set: Record<string, string>
  add: Record<string, number>
  drop: Record<string, Set<string>>
  listed: Set<string>
  removed: Set<string>
}

/** Adds up the changes of each cluster, because a transaction may write an item only once. */
export function counterWrites(
  organisationId: string,
  changes: readonly CounterChange[],
): { clusterId: string; write: WriteItem }[] {
  const sums = new Map<string, Sum>()
  for (const { clusterId, add, drop = {}, list, removeFromList, lastJobId } of changes) {
    const sum = sums.get(clusterId) ?? { add: {}, drop: {}, listed: new Set(), removed: new Set(), set: {} }
    if (lastJobId !== undefined) sum.set = lastJobOf(lastJobId)
    if (list !== undefined) sum.listed.add(list)
    if (removeFromList !== undefined) sum.removed.add(removeFromList)
    for (const [counter, amount] of Object.entries(add)) sum.add[counter] = (sum.add[counter] ?? 0) + amount
    for (const [name, ids] of Object.entries(drop)) sum.drop[name] = new Set([...(sum.drop[name] ?? []), ...ids])
    sums.set(clusterId, sum)
  }
  return [...sums].map(([clusterId, { set, add, drop, listed, removed }]) => {
    const key = keys.cluster(organisationId, clusterId)
    if (listed.size > 0) {
      const change = { set, add: { ...add, listedBatchJobs: listed }, drop }
      return { clusterId, write: patch(key, change, batchListingCondition(listed.size)) }
    }
    if (removed.size > 0) {
      const change = { set, add, drop: { ...drop, listedBatchJobs: removed } }
      return { clusterId, write: patch(key, change, { listedBatchJobs: { containsAll: removed } }) }
    }
    return { clusterId, write: patch(key, { set, add, drop }) }
  })
}
