import type { JobStatus } from '@platform/contract/job'
import type { CountedWrites, Projection } from '../outbox/run-projections.ts'
import { hiddenCountName } from '../clusters/removed.ts'
import type { Item } from '../db/table.ts'
import type { OutboxRecord } from '../outbox/record.ts'

/** Counts jobs in a projection, because a count written by every job transaction would cause contention. */
export const jobTotalsProjection: Projection = { name: 'job totals', countedWrites }

const numberOf = (item: Item | undefined, name: string): number => Math.max(0, Number(item?.[name] ?? 0))

export const countJobs = (item: Item | undefined, status: JobStatus | 'total' = 'total'): number =>
  Math.max(0, countStored(item, status) - countHidden(item, status))

/** Includes the jobs of removed clusters until they are purged. */
export const countStored = (item: Item | undefined, status: JobStatus | 'total' = 'total'): number =>
  numberOf(item, status)

export const countHidden = (item: Item | undefined, status: JobStatus | 'total' = 'total'): number =>
  numberOf(item, hiddenCountName(status))

export const countSubmitted = (item: Item | undefined, status: JobStatus | 'total' = 'total'): number =>
  Math.max(0, countStored(item, status) - numberOf(item, operationsOf(status)))

/** The totals include operations, which are also counted separately. */
const operationsOf = (status: string): string => `operations ${status}`

function countedWrites(_: string, records: readonly OutboxRecord[]): CountedWrites {
  const sums: Record<string, number> = {}
  const add = (name: string, delta: number) => (sums[name] = (sums[name] ?? 0) + delta)
  for (const { isOperation, from, to, isExpired } of records.flatMap(({ transitions }) => transitions)) {
    const isPurged = to === undefined && !isExpired
    const counters = isOperation ? [String, operationsOf] : isPurged ? [String, hiddenCountName] : [String]
    for (const counter of counters) {
      if (from !== undefined) add(counter(from), -1)
      if (to !== undefined) add(counter(to), 1)
      add(counter('total'), (to === undefined ? 0 : 1) - (from === undefined ? 0 : 1))
    }
  }
  return { add: Object.fromEntries(Object.entries(sums).filter(([, delta]) => delta !== 0)) }
}
