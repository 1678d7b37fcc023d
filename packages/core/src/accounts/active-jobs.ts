import * as z from 'zod'
import { quotaReachedError } from './quota.ts'
import { config } from '../config.ts'
import { unchangedCondition } from '../db/expression.ts'
import * as keys from '../db/keys.ts'
import { getConsistent, type Item, upsert, type WriteItem } from '../db/table.ts'
import { transact } from '../db/transact.ts'
import { BoundedCache } from '../lib/bounded-cache.ts'
import type { Projection } from '../outbox/run-projections.ts'

/**
 * Counts the queued and running jobs of an organisation for its quota. Several items share the count and the quota, so
 * that concurrent submissions rarely collide. No item accepts more than its share, so submissions cannot exceed the
 * quota. Projections count ended jobs in the organisation's counters, which they write anyway. When an item is full,
 * the ended jobs are subtracted from all items, so the count of an item may become negative.
 */

const shardCount = 4

/** Returns the keys of the items that share the count, followed by the key of the organisation's counters. */
export const activeJobsKeys = (organisationId: string): keys.Key[] => [
  ...Array.from({ length: shardCount }, (_, shard) => keys.activeJobs(organisationId, shard)),
  keys.organisationCounts(organisationId),
]

const endedCountIn = (items: readonly (Item | undefined)[]): number => Number(items[shardCount]?.['activeEnded'] ?? 0)

const ActiveCount = z
  .object({
    count: z.number().default(0),
    /** The organisation's own quota; absent for the default of the platform. */
    limit: z.number().optional(),
    /**
     * Set on all items when the quota is lowered below the total. New jobs then require a read of all items, because
     * one item does not show whether the total is below the quota again.
     */
    isOver: z.literal(true).optional(),
  })
  .prefault({})

const parseCounts = (items: readonly (Item | undefined)[]) =>
  items.slice(0, shardCount).map((item) => ActiveCount.parse(item))

const sum = (counts: readonly { count: number }[]): number => counts.reduce((total, { count }) => total + count, 0)

export const sumOfActiveJobs = (items: readonly (Item | undefined)[]): number =>
  sum(parseCounts(items)) - endedCountIn(items)

const shareOf = (total: number, shard: number): number =>
  Math.floor(total / shardCount) + (shard < ((total % shardCount) + shardCount) % shardCount ? 1 : 0)

const shardOf = (id: string): number => (id.codePointAt(id.length - 1) ?? 0) % shardCount

/**
 * The organisations' own quotas as last read. With an outdated quota, the write fails and the retry reads the current
 * quota.
 */
const ownLimits = new BoundedCache<number>(10_000)

function admissionWrite(organisationId: string, shard: number, jobCount: number): WriteItem {
  const limit = ownLimits.get(organisationId)
  const maxCount = shareOf(limit ?? config.PLAT_QUOTA_ACTIVE_JOBS, shard) - jobCount
  return upsert(
    keys.activeJobs(organisationId, shard),
    { add: { count: jobCount } },
    {
      limit: unchangedCondition(limit),
      isOver: { absent: true },
      count: maxCount >= 0 ? { absentOrAtMost: maxCount } : { atMost: maxCount },
    },
  )
}

/** Returns the write that counts new jobs. If the write fails, use the writes of `retryAdmission` instead. */
export const admissionWrites = (organisationId: string, id: string, jobCount: number): WriteItem[] => [
  admissionWrite(organisationId, shardOf(id), jobCount),
]

/** Returns writes that count new jobs in the items with the most room. Throws `limit_reached` beyond the quota. */
export async function retryAdmission(organisationId: string, jobCount: number): Promise<WriteItem[]> {
  const items = await subtractEndedJobs(organisationId)
  const counts = parseCounts(items)
  const ownLimit = counts[0]?.limit
  if (ownLimit === undefined) ownLimits.delete(organisationId)
  else ownLimits.set(organisationId, ownLimit)
  const limit = ownLimit ?? config.PLAT_QUOTA_ACTIVE_JOBS
  const usedCount = sum(counts)
  if (usedCount + jobCount > limit) throw quotaReachedError('activeJobs', { limit, used: usedCount })
  if (counts.some(({ isOver }) => isOver)) return spreadWrites(organisationId, items, usedCount + jobCount, ownLimit)
  const byRoom = counts
    .map(({ count }, shard) => ({ shard, room: shareOf(limit, shard) - count }))
    .toSorted((one, other) => other.room - one.room)
  let remainingCount = jobCount
  return byRoom.flatMap(({ shard, room }) => {
    const part = Math.min(remainingCount, room)
    if (part <= 0) return []
    remainingCount -= part
    return [admissionWrite(organisationId, shard, part)]
  })
}

/** Subtracts the ended jobs from the items, unless a concurrent call has done so. Returns the items. */
async function subtractEndedJobs(organisationId: string): Promise<(Item | undefined)[]> {
  const itemKeys = activeJobsKeys(organisationId)
  const items = await getConsistent(itemKeys)
  const endedCount = endedCountIn(items)
  if (endedCount === 0) return items
  const writes = Array.from({ length: shardCount }, (_, shard) =>
    upsert(keys.activeJobs(organisationId, shard), { add: { count: -shareOf(endedCount, shard) } }),
  )
  await transact([...subtractEndedWrites(organisationId, endedCount), ...writes])
  return getConsistent(itemKeys)
}

/** The write fails if the ended jobs were subtracted concurrently. */
const subtractEndedWrites = (organisationId: string, endedCount: number): WriteItem[] =>
  endedCount === 0
    ? []
    : [
        upsert(
          keys.organisationCounts(organisationId),
          { add: { activeEnded: -endedCount } },
          { activeEnded: { atLeast: endedCount } },
        ),
      ]

export const limitWrites = (
  organisationId: string,
  items: readonly (Item | undefined)[],
  limit: number | null,
): WriteItem[] => [
  ...spreadWrites(organisationId, items, sumOfActiveJobs(items), limit ?? undefined),
  ...subtractEndedWrites(organisationId, endedCountIn(items)),
]

/** Returns writes that store the quota and spread the count evenly over the items. They fail if an item has changed. */
function spreadWrites(
  organisationId: string,
  items: readonly (Item | undefined)[],
  total: number,
  ownLimit: number | undefined,
): WriteItem[] {
  const isOver = total > (ownLimit ?? config.PLAT_QUOTA_ACTIVE_JOBS)
  return parseCounts(items).map((before, shard) =>
    upsert(
      keys.activeJobs(organisationId, shard),
      {
        set: { count: shareOf(total, shard), limit: ownLimit, isOver: isOver || undefined },
        remove: [...(ownLimit === undefined ? ['limit'] : []), ...(isOver ? [] : ['isOver'])],
      },
      {
        count: items[shard] === undefined ? { absent: true } : { is: before.count },
        limit: unchangedCondition(before.limit),
        isOver: unchangedCondition(before.isOver),
      },
    ),
  )
}

export const activeJobsProjection: Projection = {
  name: 'active jobs',
  countedWrites: (_, records) => {
    const endedJobs = records
      .flatMap(({ transitions }) => transitions)
      // Operations do not count. A job whose creation failed does: it was counted with its batch.
      .filter(({ isOperation, from, to }) => !isOperation && !isEnded(from) && (to === undefined || isEnded(to)))
    return endedJobs.length === 0 ? {} : { add: { activeEnded: endedJobs.length } }
  },
}

const isEnded = (status: string | undefined): boolean =>
  status !== undefined && status !== 'Queued' && status !== 'Running'
