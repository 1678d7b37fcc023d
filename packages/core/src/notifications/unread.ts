import { type Caller } from '../caller.ts'
import { isWithin, now } from '../clock.ts'
import * as keys from '../db/keys.ts'
import { query } from '../db/table.ts'
import { isFeedState, readFeed } from './notification.ts'
import { BoundedCache } from '../lib/bounded-cache.ts'

/** The number of a user's unread notifications, for frequent polling. */

interface Counted {
  /** Changes with a new notification and with every marking. */
  mark: string
  unread: number
  atMs: number
}

const counted = new BoundedCache<Counted>(2000)
/** Late notifications that sort among older ones, and expired ones, show after this time. */
const keepMs = 60_000

/**
 * The unread count as in the list. One small call; one more that reads the feed after a change, and at least once a
 * minute per process.
 */
export async function unreadCount(caller: Caller): Promise<number> {
  const who = `${caller.organisationId} ${caller.userId}`
  const mark = await markOf(caller)
  const known = counted.get(who)
  if (known?.mark === mark && isWithin(known.atMs, keepMs)) return known.unread
  const { entries } = await readFeed(caller)
  const unread = entries.filter(({ isRead }) => !isRead).length
  counted.set(who, { mark, unread, atMs: now() })
  return unread
}

/** The state sorts after all entries: the first two items include the newest entry. */
async function markOf({ organisationId, userId }: Caller): Promise<string> {
  const { pk } = keys.feedState(organisationId, userId)
  const { items } = await query({ pk, newestFirst: true, limit: 2 })
  return JSON.stringify(items.map((item) => (isFeedState(item) ? item['revision'] : item['sk'])))
}
