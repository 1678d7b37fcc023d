import { type JobStatus } from '@platform/contract/job'
import * as keys from '../db/keys.ts'
import { patch, type WriteItem } from '../db/table.ts'

export interface CounterChange {
  clusterId: string
  drop?: Record<string, ReadonlySet<string>>
  add: Partial<Record<'jobs' | 'activeJobs' | 'waitingJobs' | keyof typeof endedCounters, number>>
}

const endedCounters = { jobsCompleted: 'Completed', jobsFailed: 'Failed', jobsCancelled: 'Cancelled' } as const

/** Counts a job that has ended. */
export const addEnded = (status: JobStatus): CounterChange['add'] =>
  Object.fromEntries(Object.entries(endedCounters).flatMap(([counter, of]) => (of === status ? [[counter, 1]] : [])))

/** Removes a job that has ended from the counts. */
export const subtractEnded = (status: JobStatus): CounterChange['add'] => ({
  jobs: -1,
  ...Object.fromEntries(Object.keys(addEnded(status)).map((counter) => [counter, -1])),
})

/** Only for a cluster without active jobs: Queued and Running jobs are not included. */
export const jobsByStatus = (cluster: Record<keyof typeof endedCounters, number>) => ({
  Completed: cluster.jobsCompleted,
  Failed: cluster.jobsFailed,
  Cancelled: cluster.jobsCancelled,
})

/** Adds up the changes of each cluster, because a transaction may write an item only once. */
export function counterWrites(
  organisationId: string,
  changes: readonly CounterChange[],
): { clusterId: string; write: WriteItem }[] {
  const sums = new Map<string, { add: Record<string, number>; drop: Record<string, Set<string>> }>()
  for (const { clusterId, add, drop = {} } of changes) {
    const sum = sums.get(clusterId) ?? { add: {}, drop: {} }
    for (const [counter, amount] of Object.entries(add)) sum.add[counter] = (sum.add[counter] ?? 0) + amount
    for (const [name, ids] of Object.entries(drop)) sum.drop[name] = new Set([...(sum.drop[name] ?? []), ...ids])
    sums.set(clusterId, sum)
  }
  return [...sums].map(([clusterId, change]) => ({
    clusterId,
    write: patch(keys.cluster(organisationId, clusterId), change),
  }))
}
