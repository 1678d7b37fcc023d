import {
  type Notification,
  type NotificationType,
  notificationTypes,
  type NotificationUpdate,
  severities,
  type Severity,
} from '@platform/contract/notification'
import * as z from 'zod'
import type { Caller } from '../caller.ts'
import { commit } from '../outbox/commit.ts'
import { iso, now, nowSeconds } from '../clock.ts'
import { type Condition, unchangedCondition } from '../db/expression.ts'
import * as keys from '../db/keys.ts'
import { getConsistent, type Item, patch, queryAll, upsert } from '../db/table.ts'
import { storeContentionError } from '../error.ts'
import { isId, lowestIdAt, newNonce, timeMsOf } from '../id.ts'
import { type Page, paged, pageOfItems, type PageQuery } from '../db/paging.ts'

/** A user's feed consists of small items and is read completely, so that counts are exact. */

export const retentionSeconds = 90 * 86_400
/** A transaction has at most 100 writes, of which `commit` and the state of the feed need some. */
const marksPerTransaction = 90
const maxAttempts = 5

interface FeedEntry {
  id: string
  isRead: boolean
  type?: unknown
  severity?: unknown
}

export interface NotificationFilter {
  unreadOnly: boolean
  type?: NotificationType | undefined
  severity?: Severity | undefined
}

/** Returns the newest entries first. `readTo` marks all items up to this id as read. */
export async function readFeed({
  organisationId,
  userId,
}: Caller): Promise<{ entries: FeedEntry[]; readTo: string | undefined }> {
  const from = lowestIdAt('notif', now() - retentionSeconds * 1000)
  const items = await queryAll({ pk: keys.feedState(organisationId, userId).pk, from, isNewestFirst: true })
  const { readTo } = FeedState.parse(items.find(isFeedState) ?? {})
  const entries = items.filter((item) => !isFeedState(item)).map((item) => parseEntry(item, readTo))
  return { entries, readTo }
}

const FeedState = z.object({ readTo: z.string().optional() })
export const isFeedState = ({ sk }: Item): boolean => sk === keys.feedState('', '').sk

const parseEntry = ({ sk, isRead, type, severity }: Item, readTo = ''): FeedEntry => ({
  type,
  severity,
  id: String(sk),
  isRead: isRead === true || String(sk) <= readTo,
})

const NotificationContent = z.object({
  type: z.enum(notificationTypes),
  title: z.string(),
  body: z.string(),
  severity: z.enum(severities),
  resource: z.string(),
  count: z.number().optional(),
})

export const list = (caller: Caller, { page, pageSize, cursor, ...filter }: NotificationFilter & PageQuery) =>
  paged(['notifications', caller.userId, filter], { page, pageSize, cursor }, (each) => readPage(caller, filter, each))

async function readPage(caller: Caller, { unreadOnly, type, severity }: NotificationFilter, page: Page) {
  const { entries } = await readFeed(caller)
  const unreadEntries = entries.filter(({ isRead }) => !isRead)
  const matchingEntries = (unreadOnly ? unreadEntries : entries).filter(
    (entry) => (type ?? entry.type) === entry.type && (severity ?? entry.severity) === entry.severity,
  )
  const { items: pageEntries, ...rest } = pageOfItems(matchingEntries, page, ({ id }) => id)
  const contents = await getConsistent(pageEntries.map(({ id }) => keys.notification(caller.organisationId, id)))
  const items = pageEntries.flatMap((entry, index) => viewOf(entry, contents[index]))
  return { items, unreadCount: unreadEntries.length, ...rest }
}

const viewOf = ({ id, isRead }: FeedEntry, content: Item | undefined): Notification[] =>
  content === undefined
    ? []
    : [{ id, ...NotificationContent.parse(content), read: isRead, createdAt: iso(timeMsOf(id)) }]

export async function markRead(caller: Caller, { ids = [], markAllRead = false }: NotificationUpdate): Promise<void> {
  if (markAllRead) return retry(() => markAll(caller))
  const validIds = [...new Set(ids)].filter((id) => isId('notif', id))
  for (let from = 0; from < validIds.length; from += marksPerTransaction) {
    await retry(() => markByIds(caller, validIds.slice(from, from + marksPerTransaction)))
  }
}

/** An item may expire between read and write; the next attempt reads again. */
async function retry(attempt: () => Promise<boolean>): Promise<void> {
  for (let count = 0; count < maxAttempts; count++) if (await attempt()) return
  throw storeContentionError()
}

async function markByIds(caller: Caller, ids: readonly string[]): Promise<boolean> {
  const items = await getConsistent(ids.map((id) => keys.feed(caller.organisationId, caller.userId, id)))
  const unreadItems = items.filter((item) => item !== undefined && item['isRead'] !== true)
  return writeMarks(
    caller,
    unreadItems.map((item) => String(item?.['sk'])),
    {},
  )
}

/**
 * Marks the newest items as read individually, so that a late notification among them stays unread; `readTo` covers
 * older ones.
 */
async function markAll(caller: Caller): Promise<boolean> {
  const { entries, readTo } = await readFeed(caller)
  const unreadIds = entries.filter(({ isRead }) => !isRead).map(({ id }) => id)
  const newestOlderId = unreadIds[marksPerTransaction]
  if (newestOlderId === undefined) return writeMarks(caller, unreadIds, {})
  const newestIds = unreadIds.slice(0, marksPerTransaction)
  return writeMarks(caller, newestIds, { readTo: newestOlderId }, { readTo: unchangedCondition(readTo) })
}

/** Also writes the state, which invalidates cached unread counts. Returns whether the write succeeded. */
async function writeMarks(
  caller: Caller,
  ids: readonly string[],
  state: { readTo?: string },
  condition: Condition = {},
): Promise<boolean> {
  if (ids.length === 0) return true
  const { organisationId, userId } = caller
  const marks = ids.map((id) => patch(keys.feed(organisationId, userId, id), { set: { isRead: true } }))
  const set = { ...state, revision: newNonce(), ttl: nowSeconds() + retentionSeconds }
  const writes = [...marks, upsert(keys.feedState(organisationId, userId), { set }, condition)]
  const detail = state.readTo === undefined ? `${ids.length} marked as read` : 'All marked as read'
  const audit = { action: 'notification.read', resource: userId, detail }
  return (await commit(caller, { writes, audit })) === undefined
}
