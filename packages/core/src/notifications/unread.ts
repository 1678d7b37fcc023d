import { type Caller } from '../caller.ts'
import { isWithin, now } from '../clock.ts'
import * as keys from '../db/keys.ts'
import { query } from '../db/table.ts'
import { isFeedState, readFeed } from './notification.ts'
import { BoundedCache } from '../lib/bounded-cache.ts'

/** Caches unread counts, which clients poll frequently. */

interface CachedCount {
  /** Changes with a new notification and whenever notifications are marked as read. */
  tag: string
  unread: number
  atMs: number
}

const counts = new BoundedCache<CachedCount>(2000)
/** Late notifications that sort among older ones, and expired ones, are counted correctly after this time. */
const cacheMs = 60_000

/**
 * The unread count. One small call; one more after a change, and at least once a minute per process, reads the feed.
 */
export async function unreadCount(caller: Caller): Promise<number> {
  const key = `${caller.organisationId} ${caller.userId}`
  const tag = await tagOf(caller)
  const cached = counts.get(key)
  if (cached?.tag === tag && isWithin(cached.atMs, cacheMs)) return cached.unread
  const { entries } = await readFeed(caller)
  const unread = entries.filter(({ isRead }) => !isRead).length
  counts.set(key, { tag, unread, atMs: now() })
  return unread
}

/** The state sorts after all entries, so the two last items include the newest entry. */
async function tagOf({ organisationId, userId }: Caller): Promise<string> {
  const { pk } = keys.feedState(organisationId, userId)
  const { items } = await query({ pk, newestFirst: true, limit: 2 })
  return JSON.stringify(items.map((item) => (isFeedState(item) ? item['revision'] : item['sk'])))
}
