import { type History, type HistoryPoint, maxHistoryPoints } from '@platform/contract/history'
import type { ClusterCounts } from '@platform/contract/portal'
import type { Caller } from '../caller.ts'
import { countByStatus } from '../clusters/record.ts'
import { iso, now } from '../clock.ts'
import * as keys from '../db/keys.ts'
import { getConsistent, type Item, query, queryAll } from '../db/table.ts'
import { bucketMs, currentBucket, historyCounters } from './history-projection.ts'

/** Multiples of the bucket length. */
const intervalMinutes = [15, 30, 60, 120, 240] as const

interface Intervals {
  starts: readonly number[]
  stepMs: number
}

/** Data that the caller may not read is omitted. Longer ranges use longer intervals. */
export async function readHistory({ organisationId, permissions }: Caller, hours: number): Promise<History> {
  const intervals = intervalsOf(hours)
  const countKeys = [keys.clusterStatusCounts(organisationId), keys.organisationCounts(organisationId)]
  const currentItems = getConsistent(countKeys, { mayBeStale: true })
  const [clusters, jobs] = await Promise.all([
    permissions.has('clusters:read') ? clustersPerInterval(organisationId, intervals, currentItems) : undefined,
    permissions.has('jobs:read') ? jobsPerInterval(organisationId, intervals, currentItems) : undefined,
  ])
  const points = intervals.starts.map((startMs, index): HistoryPoint => {
    const [byStatus, counts] = [clusters?.points[index], jobs?.points[index]]
    return { at: iso(startMs), ...(byStatus && { clusters: { byStatus } }), ...(counts && { jobs: counts }) }
  })
  const previousCounts = {
    ...(clusters?.before && { clusters: { byStatus: clusters.before } }),
    ...(jobs && { jobs: jobs.before }),
  }
  return { stepMinutes: intervals.stepMs / 60_000, points, previous: previousCounts }
}

function intervalsOf(hours: number): Intervals {
  const minutes = hours * 60
  const stepMinutes = intervalMinutes.find((step) => minutes / step <= maxHistoryPoints) ?? 240
  const stepMs = stepMinutes * 60_000
  const lastMs = Math.floor(now() / stepMs) * stepMs
  const count = Math.ceil(minutes / stepMinutes)
  return { starts: Array.from({ length: count }, (_, index) => lastMs - (count - 1 - index) * stepMs), stepMs }
}

const readBuckets = (from: keys.Key, to: keys.Key): Promise<Item[]> =>
  queryAll({ pk: from.pk, from: from.sk, to: to.sk, mayBeStale: true })

const lastBucket = ({ starts, stepMs }: Intervals): number => (starts.at(-1) ?? 0) + stepMs - bucketMs

/** Points before the first snapshot are undefined. The last interval shows the current counts. */
async function clustersPerInterval(
  organisationId: string,
  intervals: Intervals,
  currentItems: Promise<(Item | undefined)[]>,
): Promise<{ points: (ClusterCounts | undefined)[]; before: ClusterCounts | undefined }> {
  const firstMs = intervals.starts[0] ?? 0
  const key = (bucketStartMs: number) => keys.clusterHistory(organisationId, bucketStartMs)
  const [before, snapshots, [statusCounts]] = await Promise.all([
    snapshotBefore(organisationId, firstMs),
    readBuckets(key(firstMs), key(lastBucket(intervals))),
    currentItems,
  ])
  let nextIndex = 0
  let currentSnapshot = before
  const points = intervals.starts.map((startMs, index) => {
    if (index === intervals.starts.length - 1) return countByStatus(statusCounts)
    for (
      ;
      nextIndex < snapshots.length && keys.bucketStartMsOf(snapshots[nextIndex]?.['sk']) < startMs + intervals.stepMs;
      nextIndex++
    ) {
      currentSnapshot = snapshots[nextIndex]
    }
    return currentSnapshot && clusterCounts(currentSnapshot)
  })
  return { points, before: before && clusterCounts(before) }
}

async function snapshotBefore(organisationId: string, beforeMs: number): Promise<Item | undefined> {
  const { pk, sk } = keys.clusterHistory(organisationId, beforeMs - bucketMs)
  const { items } = await query({ pk, from: 'CLUSTERS#', to: sk, isNewestFirst: true, limit: 1, mayBeStale: true })
  return items[0]
}

const clusterCounts = (snapshot: Item): ClusterCounts => ({
  Healthy: Number(snapshot['Healthy'] ?? 0),
  Degraded: Number(snapshot['Degraded'] ?? 0),
  Pending: Number(snapshot['Pending'] ?? 0),
  Offline: Number(snapshot['Offline'] ?? 0),
})

type JobCounts = NonNullable<HistoryPoint['jobs']>

async function jobsPerInterval(
  organisationId: string,
  intervals: Intervals,
  currentItems: Promise<(Item | undefined)[]>,
): Promise<{ points: JobCounts[]; before: JobCounts }> {
  const firstMs = intervals.starts[0] ?? 0
  const beforeMs = firstMs - intervals.starts.length * intervals.stepMs
  const key = (bucketStartMs: number) => keys.jobHistory(organisationId, bucketStartMs)
  const noJobs = { submitted: 0, completed: 0, failed: 0, cancelled: 0 }
  const [points, before] = [intervals.starts.map(() => ({ ...noJobs })), { ...noJobs }]
  const add = (bucket: number, countedItem: Item) => {
    const point = bucket < firstMs ? before : points[Math.floor((bucket - firstMs) / intervals.stepMs)]
    for (const name of historyCounters) if (point !== undefined) point[name] += Number(countedItem[name] ?? 0)
  }
  const [buckets, [, item]] = await Promise.all([readBuckets(key(beforeMs), key(lastBucket(intervals))), currentItems])
  for (const bucket of buckets) add(keys.bucketStartMsOf(bucket['sk']), bucket)
  const newestBucket = currentBucket(item)
  if (newestBucket !== undefined && newestBucket.bucket >= beforeMs) add(newestBucket.bucket, newestBucket.counts)
  return { points, before }
}
