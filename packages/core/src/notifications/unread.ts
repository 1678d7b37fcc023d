import type { Caller } from '../caller.ts'
import { isWithin, now } from '../clock.ts'
import * as keys from '../db/keys.ts'
import { query } from '../db/table.ts'
import { isFeedState, readFeed } from './notification.ts'
import { BoundedCache } from '../lib/bounded-cache.ts'

/** Clients poll the unread count frequently, so it is cached. */

interface CachedCount {
  /** Changes when a notification arrives or is marked as read. */
  tag: string
  count: number
  atMs: number
}

const counts = new BoundedCache<CachedCount>(2000)
/**
 * Limits how long a count is wrong after a late notification is sorted among older ones, or after notifications expire.
 */
const cacheTtlMs = 60_000

export async function unreadCount(caller: Caller): Promise<number> {
  const key = `${caller.organisationId} ${caller.userId}`
  const tag = await tagOf(caller)
  const cachedCount = counts.get(key)
  if (cachedCount?.tag === tag && isWithin(cachedCount.atMs, cacheTtlMs)) return cachedCount.count
  const { entries } = await readFeed(caller)
  const count = entries.filter(({ isRead }) => !isRead).length
  counts.set(key, { tag, count, atMs: now() })
  return count
}

/** The state sorts after all notifications, so the last two items include the newest notification. */
async function tagOf({ organisationId, userId }: Caller): Promise<string> {
  const { pk } = keys.feedState(organisationId, userId)
  const { items } = await query({ pk, isNewestFirst: true, limit: 2 })
  return JSON.stringify(items.map((item) => (isFeedState(item) ? item['revision'] : item['sk'])))
}
