import { type JobStatus } from '@platform/contract/job'
import { type Condition } from '../db/expression.ts'
import * as keys from '../db/keys.ts'
import { patch, type WriteItem } from '../db/table.ts'

export interface CounterChange {
  clusterId: string
  drop?: Record<string, ReadonlySet<string>>
  /** The id of a job to add to the listed jobs. The write then has the condition of `listingCondition`. */
  list?: string
  lastJobId?: string
  add: Partial<Record<'jobs' | 'activeJobs' | 'waitingJobs' | keyof typeof endedCounters, number>>
}

export const lastJobOf = (jobId: string) => ({ lastJob: jobId.slice('job_'.length) })

/** Limits the size of the cluster record, because each heartbeat writes the record. */
export const maxListed = 6

/** Requires that the list has room for `count` more jobs, and that no job waits in the inbox. */
export const listingCondition = (count: number): Condition => ({
  listedJobs: { absentOrSmaller: maxListed - count + 1 },
  waitingJobs: { absentOrAtMost: 0 },
})

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
  listedJobs: Set<string>
}

/** Adds up the changes of each cluster, because a transaction may write an item only once. */
export function counterWrites(
  organisationId: string,
  changes: readonly CounterChange[],
): { clusterId: string; write: WriteItem }[] {
  const sums = new Map<string, Sum>()
  for (const { clusterId, add, drop = {}, list, lastJobId } of changes) {
    const sum = sums.get(clusterId) ?? { add: {}, drop: {}, listedJobs: new Set(), set: {} }
    if (lastJobId !== undefined) sum.set = lastJobOf(lastJobId)
    if (list !== undefined) sum.listedJobs.add(list)
    for (const [counter, amount] of Object.entries(add)) sum.add[counter] = (sum.add[counter] ?? 0) + amount
    for (const [name, ids] of Object.entries(drop)) sum.drop[name] = new Set([...(sum.drop[name] ?? []), ...ids])
    sums.set(clusterId, sum)
  }
  return [...sums].map(([clusterId, { add, drop, listedJobs, set }]) => ({
    clusterId,
    write:
      listedJobs.size === 0
        ? patch(keys.cluster(organisationId, clusterId), { set, add, drop })
        : patch(
            keys.cluster(organisationId, clusterId),
            { set, add: { ...add, listedJobs }, drop },
            listingCondition(listedJobs.size),
          ),
  }))
}
