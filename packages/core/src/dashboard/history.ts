import { type History, type HistoryPoint, historyPoints } from '@platform/contract/history'
import { type ClusterCounts } from '@platform/contract/portal'
import { type Caller } from '../caller.ts'
import { countByStatus } from '../clusters/record.ts'
import { iso, now } from '../clock.ts'
import * as keys from '../db/keys.ts'
import { get, type Item, query, queryAll } from '../db/table.ts'
import { bucketMs } from './history-projection.ts'

/** Reads the history for charts; see `history-projection.ts` for the stored data. */

/** Readable chart intervals, as multiples of a bucket. */
const stepsMinutes = [15, 30, 60, 120, 240] as const

/** The intervals of a range, oldest first: their starts and length. */
interface Steps {
  starts: readonly number[]
  stepMs: number
}

/**
 * The last hours in intervals, as far as the caller may read them. Longer ranges have longer intervals. Up to four
 * concurrent calls; the longest range is one query of at most 2,880 small items for clusters and one for jobs.
 */
export async function readHistory({ organisationId, permissions }: Caller, hours: number): Promise<History> {
  const steps = stepsOf(hours)
  const [clusters, jobs] = await Promise.all([
    permissions.has('clusters:read') ? clustersOver(organisationId, steps) : undefined,
    permissions.has('jobs:read') ? jobsOver(organisationId, steps) : undefined,
  ])
  const points = steps.starts.map((startMs, index): HistoryPoint => {
    const [byStatus, counts] = [clusters?.[index], jobs?.[index]]
    return { at: iso(startMs), ...(byStatus && { clusters: { byStatus } }), ...(counts && { jobs: counts }) }
  })
  return { stepMinutes: steps.stepMs / 60_000, points }
}

function stepsOf(hours: number): Steps {
  const minutes = hours * 60
  const stepMinutes = stepsMinutes.find((step) => minutes / step <= historyPoints) ?? 240
  const stepMs = stepMinutes * 60_000
  const lastMs = Math.floor(now() / stepMs) * stepMs
  const count = Math.ceil(minutes / stepMinutes)
  return { starts: Array.from({ length: count }, (_, index) => lastMs - (count - 1 - index) * stepMs), stepMs }
}

/** All items of a range of buckets, oldest first. One call per 1 MB, which covers the longest range. */
const slotsBetween = (from: keys.Key, to: keys.Key): Promise<Item[]> =>
  queryAll({ pk: from.pk, from: from.sk, to: to.sk, stale: true })

const latestSlot = ({ starts, stepMs }: Steps): number => (starts.at(-1) ?? 0) + stepMs - bucketMs

/** Unknown values are undefined. The last interval has the current counts. */
async function clustersOver(organisationId: string, steps: Steps): Promise<(ClusterCounts | undefined)[]> {
  const firstMs = steps.starts[0] ?? 0
  const key = (slot: number) => keys.clusterHistory(organisationId, slot)
  const [before, looks, tally] = await Promise.all([
    lookBefore(organisationId, firstMs),
    slotsBetween(key(firstMs), key(latestSlot(steps))),
    get(keys.clusterStatusCounts(organisationId), { stale: true }),
  ])
  let next = 0
  let current = before
  return steps.starts.map((startMs, index) => {
    if (index === steps.starts.length - 1) return countByStatus(tally)
    for (; next < looks.length && keys.bucketStartOf(looks[next]?.['sk']) < startMs + steps.stepMs; next++) {
      current = looks[next]
    }
    return current && countsOf(current)
  })
}

/** The last reading before a time, which is valid until the next one. One call. */
async function lookBefore(organisationId: string, ms: number): Promise<Item | undefined> {
  const { pk, sk } = keys.clusterHistory(organisationId, ms - bucketMs)
  const { items } = await query({ pk, from: 'CLUSTERS#', to: sk, newestFirst: true, limit: 1, stale: true })
  return items[0]
}

const countsOf = (look: Item): ClusterCounts => ({
  Healthy: Number(look['Healthy'] ?? 0),
  Degraded: Number(look['Degraded'] ?? 0),
  Pending: Number(look['Pending'] ?? 0),
  Offline: Number(look['Offline'] ?? 0),
})

type JobCounts = NonNullable<HistoryPoint['jobs']>

async function jobsOver(organisationId: string, steps: Steps): Promise<JobCounts[]> {
  const firstMs = steps.starts[0] ?? 0
  const key = (slot: number) => keys.jobHistory(organisationId, slot)
  const counts = steps.starts.map(() => ({ submitted: 0, completed: 0, failed: 0, cancelled: 0 }))
  for (const item of await slotsBetween(key(firstMs), key(latestSlot(steps)))) {
    const step = counts[Math.floor((keys.bucketStartOf(item['sk']) - firstMs) / steps.stepMs)]
    if (step === undefined) continue
    for (const name of ['submitted', 'completed', 'failed', 'cancelled'] as const) {
      step[name] += Number(item[name] ?? 0)
    }
  }
  return counts
}
