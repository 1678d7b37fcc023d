import { type JobStatus } from '@platform/contract/job'
import { type Projection } from '../outbox/run-projections.ts'
import * as keys from '../db/keys.ts'
import { type Item, type WriteItem, upsert } from '../db/table.ts'
import { type OutboxRecord } from '../outbox/record.ts'

/**
 * How many jobs an organisation has, in all and by status: one write for each closing of the books. Transactions of jobs
 * never touch it, or they would all meet there.
 */
export const jobTotalsProjection: Projection = { name: 'job totals', entries }

/** The jobs that a stored item counts, in all or of one status. */
export const countJobs = (item: Item | undefined, status: JobStatus | 'total' = 'total'): number =>
  Math.max(0, Number(item?.[status] ?? 0))

/** Those of them that clients have submitted. */
export const countSubmitted = (item: Item | undefined, status: JobStatus | 'total' = 'total'): number =>
  Math.max(0, countJobs(item, status) - Number(item?.[operationsOf(status)] ?? 0))

/** Where the jobs among them are counted once more that the platform does on itself. */
const operationsOf = (status: string): string => `operations ${status}`

async function entries(organisationId: string, records: readonly OutboxRecord[]): Promise<readonly WriteItem[]> {
  const sums: Record<string, number> = {}
  const count = (name: string, by: number) => (sums[name] = (sums[name] ?? 0) + by)
  for (const { clusterId, from, to } of records.flatMap(({ moves }) => moves)) {
    const counters = clusterId === undefined ? [String, operationsOf] : [String]
    for (const counter of counters) {
      if (from !== undefined) count(counter(from), -1)
      if (to !== undefined) count(counter(to), 1)
      count(counter('total'), (to === undefined ? 0 : 1) - (from === undefined ? 0 : 1))
    }
  }
  const add = Object.fromEntries(Object.entries(sums).filter(([, by]) => by !== 0))
  return Object.keys(add).length === 0 ? [] : [upsert(keys.jobTotals(organisationId), { add })]
}
