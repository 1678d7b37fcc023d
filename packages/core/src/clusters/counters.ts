import { type JobStatus } from '@platform/contract/job'
import * as keys from '../db/keys.ts'
import { patch, type WriteItem } from '../db/table.ts'

export interface CounterChange {
  clusterId: string
  add: Partial<Record<'jobs' | 'activeJobs' | 'waitingJobs' | keyof typeof endedCounters, number>>
}

const endedCounters = { jobsCompleted: 'Completed', jobsFailed: 'Failed', jobsCancelled: 'Cancelled' } as const

/** Counts a job that has ended. */
export const addEnded = (status: JobStatus): CounterChange['add'] =>
  Object.fromEntries(Object.entries(endedCounters).flatMap(([counter, of]) => (of === status ? [[counter, 1]] : [])))

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
  const sums = new Map<string, Record<string, number>>()
  for (const { clusterId, add } of changes) {
    const sum = sums.get(clusterId) ?? {}
    for (const [counter, amount] of Object.entries(add)) sum[counter] = (sum[counter] ?? 0) + amount
    sums.set(clusterId, sum)
  }
  return [...sums].map(([clusterId, add]) => ({
    clusterId,
    write: patch(keys.cluster(organisationId, clusterId), { add }),
  }))
}
