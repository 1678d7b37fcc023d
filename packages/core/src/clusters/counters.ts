import * as keys from '../db/keys.ts'
import { patch, type WriteItem } from '../db/table.ts'

/** Changes of a cluster's counters: all jobs, active jobs and jobs in the inbox. */
export interface CounterChange {
  clusterId: string
  add: Partial<Record<'jobs' | 'activeJobs' | 'waitingJobs', number>>
}

/** The writes of many such changes, one per cluster: a transaction may write an item only once. */
export function counterWrites(
  organisationId: string,
  changes: readonly CounterChange[],
): { clusterId: string; step: WriteItem }[] {
  const sums = new Map<string, Record<string, number>>()
  for (const { clusterId, add } of changes) {
    const sum = sums.get(clusterId) ?? {}
    for (const [counter, by] of Object.entries(add)) sum[counter] = (sum[counter] ?? 0) + by
    sums.set(clusterId, sum)
  }
  return [...sums].map(([clusterId, add]) => ({
    clusterId,
    step: patch(keys.cluster(organisationId, clusterId), { add }),
  }))
}
