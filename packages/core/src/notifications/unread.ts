import { type Caller } from '../caller.ts'
import { isWithin, now } from '../clock.ts'
import * as keys from '../db/keys.ts'
import { query } from '../db/table.ts'
import { isFeedState, readFeed } from './notification.ts'
import { BoundedCache } from '../lib/bounded-cache.ts'

/** How many notifications of a user are unread, for whoever asks every few seconds. */

interface Counted {
  /** Changes with a new notification, and whenever the user marks any. */
  mark: string
  unread: number
  atMs: number
}

const counted = new BoundedCache<Counted>(2000)
/** What has come late and sorts among older ones, or has expired, is seen after this long. */
const keepMs = 60_000

/**
 * The count that the list tells. One small call; one more that reads the feed where something has changed, and at least once
 * a minute in each process.
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

/** The state sorts behind all entries: the first two items are it and the newest entry, or two entries. */
async function markOf({ organisationId, userId }: Caller): Promise<string> {
  const { pk } = keys.feedState(organisationId, userId)
  const { items } = await query({ pk, newestFirst: true, limit: 2 })
  return JSON.stringify(items.map((item) => (isFeedState(item) ? item['revision'] : item['sk'])))
}
