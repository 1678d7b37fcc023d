import * as z from 'zod'
import { quotaReached } from './quota.ts'
import { config } from '../config.ts'
import { unchanged } from '../db/expression.ts'
import * as keys from '../db/keys.ts'
import { getConsistent, type Item, upsert, type WriteItem } from '../db/table.ts'
import { transact } from '../db/transact.ts'
import { BoundedCache } from '../lib/bounded-cache.ts'
import { type Projection } from '../outbox/run-projections.ts'

/**
 * Counts the queued and running jobs of an organisation for its quota. Several items share the count and the quota, so
 * that concurrent submissions rarely collide. No item accepts more than its share, so the sum never exceeds the quota.
 * Projections count ended jobs in the item of counts, which they write anyway. When an item is full, they are
 * subtracted from the items, so an item may become negative.
 */

const shards = 4

/** The item of counts is the last one. */
export const activeJobsKeys = (organisationId: string): keys.Key[] => [
  ...Array.from({ length: shards }, (_, shard) => keys.activeJobs(organisationId, shard)),
  keys.organisationCounts(organisationId),
]

const endedIn = (items: readonly (Item | undefined)[]): number => Number(items[shards]?.['activeEnded'] ?? 0)

const ActiveCount = z
  .object({
    count: z.number().default(0),
    /** The organisation's own quota; absent for the default of the platform. */
    limit: z.number().optional(),
    /**
     * Set on all items while the total exceeds a lowered quota. One item cannot show that the total is below the quota
     * again, so new jobs require a read of all items.
     */
    isOver: z.literal(true).optional(),
  })
  .prefault({})

const parseCounts = (items: readonly (Item | undefined)[]) =>
  items.slice(0, shards).map((item) => ActiveCount.parse(item))

const sum = (counts: readonly { count: number }[]): number => counts.reduce((total, { count }) => total + count, 0)

export const sumOfActiveJobs = (items: readonly (Item | undefined)[]): number =>
  sum(parseCounts(items)) - endedIn(items)

const shareOf = (total: number, shard: number): number =>
  Math.floor(total / shards) + (shard < ((total % shards) + shards) % shards ? 1 : 0)

const shardOf = (id: string): number => (id.codePointAt(id.length - 1) ?? 0) % shards

/**
 * The organisations' own quotas as last read. With an outdated quota, the write fails and the retry reads the current
 * quota.
 */
const ownLimits = new BoundedCache<number>(10_000)

function admissionWrite(organisationId: string, shard: number, jobs: number): WriteItem {
  const limit = ownLimits.get(organisationId)
  const room = shareOf(limit ?? config.PLAT_QUOTA_ACTIVE_JOBS, shard) - jobs
  return upsert(
    keys.activeJobs(organisationId, shard),
    { add: { count: jobs } },
    {
      limit: unchanged(limit),
      isOver: { absent: true },
      count: room >= 0 ? { absentOrAtMost: room } : { atMost: room },
    },
  )
}

/** Counts new jobs in the transaction that accepts them. If it fails, use `retryAdmission`. */
export const admissionWrites = (organisationId: string, id: string, jobs: number): WriteItem[] => [
  admissionWrite(organisationId, shardOf(id), jobs),
]

/** Spreads the jobs over the items with the most room. Throws `limit_reached` if they exceed the quota. */
export async function retryAdmission(organisationId: string, jobs: number): Promise<WriteItem[]> {
  const items = await itemsWithoutEnded(organisationId)
  const counts = parseCounts(items)
  const ownLimit = counts[0]?.limit
  if (ownLimit === undefined) ownLimits.delete(organisationId)
  else ownLimits.set(organisationId, ownLimit)
  const limit = ownLimit ?? config.PLAT_QUOTA_ACTIVE_JOBS
  const used = sum(counts)
  if (used + jobs > limit) throw quotaReached('activeJobs', { limit, used })
  if (counts.some(({ isOver }) => isOver)) return spreadWrites(organisationId, items, used + jobs, ownLimit)
  const byRoom = counts
    .map(({ count }, shard) => ({ shard, room: shareOf(limit, shard) - count }))
    .toSorted((one, other) => other.room - one.room)
  let left = jobs
  return byRoom.flatMap(({ shard, room }) => {
    const part = Math.min(left, room)
    if (part <= 0) return []
    left -= part
    return [admissionWrite(organisationId, shard, part)]
  })
}

/** Subtracts the ended jobs from the items, and returns the items. A concurrent subtraction has the same effect. */
async function itemsWithoutEnded(organisationId: string): Promise<(Item | undefined)[]> {
  const itemKeys = activeJobsKeys(organisationId)
  const items = await getConsistent(itemKeys)
  const ended = endedIn(items)
  if (ended === 0) return items
  const writes = Array.from({ length: shards }, (_, shard) =>
    upsert(keys.activeJobs(organisationId, shard), { add: { count: -shareOf(ended, shard) } }),
  )
  await transact([...subtractEnded(organisationId, ended), ...writes])
  return getConsistent(itemKeys)
}

/** Fails if the ended jobs were subtracted concurrently. */
const subtractEnded = (organisationId: string, ended: number): WriteItem[] =>
  ended === 0
    ? []
    : [
        upsert(
          keys.organisationCounts(organisationId),
          { add: { activeEnded: -ended } },
          { activeEnded: { atLeast: ended } },
        ),
      ]

export const limitWrites = (
  organisationId: string,
  items: readonly (Item | undefined)[],
  limit: number | null,
): WriteItem[] => [
  ...spreadWrites(organisationId, items, sumOfActiveJobs(items), limit ?? undefined),
  ...subtractEnded(organisationId, endedIn(items)),
]

/** Spreads the count evenly over the items, which must be unchanged. */
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
        limit: unchanged(before.limit),
        isOver: unchanged(before.isOver),
      },
    ),
  )
}

export const activeJobsProjection: Projection = {
  name: 'active jobs',
  countedWrites: (_, records) => {
    const ended = records
      .flatMap(({ transitions }) => transitions)
      // Operations have no cluster. A job whose creation failed was counted when its batch was accepted.
      .filter(
        ({ clusterId, from, to }) => clusterId !== undefined && !isEnded(from) && (to === undefined || isEnded(to)),
      )
    return ended.length === 0 ? {} : { add: { activeEnded: ended.length } }
  },
}

const isEnded = (status: string | undefined): boolean =>
  status !== undefined && status !== 'Queued' && status !== 'Running'
