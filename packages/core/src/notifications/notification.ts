import {
  type Notification,
  type NotificationType,
  notificationTypes,
  type NotificationUpdate,
  severities,
  type Severity,
} from '@platform/contract/notification'
import * as z from 'zod'
import { type Caller } from '../caller.ts'
import { commit } from '../outbox/commit.ts'
import { iso, now, nowSeconds } from '../clock.ts'
import { type Condition, unchanged } from '../db/expression.ts'
import * as keys from '../db/keys.ts'
import { getConsistent, type Item, patch, queryAll, upsert } from '../db/table.ts'
import { storeContention } from '../error.ts'
import { idsBefore, isId, newNonce, timeOf } from '../id.ts'
import { type Page } from '../db/index-page.ts'

/** The notifications of a user: a feed of small entries that is read as a whole, so that counts are exact. */

/** Retention of notifications. */
export const keepSeconds = 90 * 86_400
/** Entries marked in one transaction, with room for the outbox record. */
const marksAtOnce = 90
const attempts = 5

interface Entry {
  id: string
  isRead: boolean
  /** Missing in entries of earlier releases, which no filter matches. */
  type?: unknown
  severity?: unknown
}

/** Filters, in any combination. */
export interface NotificationFilter {
  unreadOnly: boolean
  type?: NotificationType | undefined
  severity?: Severity | undefined
}

/** A user's entries, newest first. All up to `readTo` are read. One call per 1 MB, some 8,000 entries. */
export async function readFeed({
  organisationId,
  userId,
}: Caller): Promise<{ entries: Entry[]; readTo: string | undefined }> {
  const from = idsBefore('notif', now() - keepSeconds * 1000)
  const items = await queryAll({ pk: keys.feedState(organisationId, userId).pk, from, newestFirst: true })
  const { readTo } = State.parse(items.find(isFeedState) ?? {})
  const entries = items.filter((item) => !isFeedState(item)).map((item) => parseEntry(item, readTo))
  return { entries, readTo }
}

const State = z.object({ readTo: z.string().optional() })
/** Whether an item of a feed is its state instead of an entry. */
export const isFeedState = ({ sk }: Item): boolean => sk === keys.feedState('', '').sk

const parseEntry = ({ sk, isRead, type, severity }: Item, readTo = ''): Entry => ({
  type,
  severity,
  id: String(sk),
  isRead: isRead === true || String(sk) <= readTo,
})

const Detail = z.object({
  type: z.enum(notificationTypes),
  title: z.string(),
  body: z.string(),
  severity: z.enum(severities),
  resource: z.string(),
})

/** One page, newest first, with exact counts. Two calls. */
export async function list(caller: Caller, { unreadOnly, type, severity, page, pageSize }: NotificationFilter & Page) {
  const { entries } = await readFeed(caller)
  const unread = entries.filter(({ isRead }) => !isRead)
  const wanted = (unreadOnly ? unread : entries).filter(
    (entry) => (type ?? entry.type) === entry.type && (severity ?? entry.severity) === entry.severity,
  )
  const shown = wanted.slice((page - 1) * pageSize, page * pageSize)
  const details = await getConsistent(shown.map(({ id }) => keys.notification(caller.organisationId, id)))
  const items = shown.flatMap((entry, index) => viewOf(entry, details[index]))
  return { items, totalCount: wanted.length, unreadCount: unread.length, page, pageSize }
}

const viewOf = ({ id, isRead }: Entry, detail: Item | undefined): Notification[] =>
  detail === undefined ? [] : [{ id, ...Detail.parse(detail), read: isRead, createdAt: iso(timeOf(id)) }]

/** Marks the given notifications as read, or all current ones. Two calls per 90 given ones. */
export async function markRead(caller: Caller, { ids = [], markAllRead = false }: NotificationUpdate): Promise<void> {
  if (markAllRead) return untilDone(() => markAll(caller))
  const known = [...new Set(ids)].filter((id) => isId('notif', id))
  for (let first = 0; first < known.length; first += marksAtOnce) {
    await untilDone(() => markNamed(caller, known.slice(first, first + marksAtOnce)))
  }
}

/** An entry may expire between read and write; then all is read again. */
async function untilDone(attempt: () => Promise<boolean>): Promise<void> {
  for (let count = 0; count < attempts; count++) if (await attempt()) return
  throw storeContention()
}

async function markNamed(caller: Caller, ids: readonly string[]): Promise<boolean> {
  const items = await getConsistent(ids.map((id) => keys.feed(caller.organisationId, caller.userId, id)))
  const unread = items.filter((item) => item !== undefined && item['isRead'] !== true)
  return write(
    caller,
    unread.map((item) => String(item?.['sk'])),
    {},
  )
}

/**
 * Marks the newest ones individually, so that a late notification that sorts among them stays unread; older ones are
 * covered by `readTo`.
 */
async function markAll(caller: Caller): Promise<boolean> {
  const { entries, readTo } = await readFeed(caller)
  const unread = entries.filter(({ isRead }) => !isRead).map(({ id }) => id)
  const older = unread[marksAtOnce]
  return older === undefined
    ? write(caller, unread, {})
    : write(caller, unread.slice(0, marksAtOnce), { readTo: older }, { readTo: unchanged(readTo) })
}

/** Returns whether the write succeeded. Includes the state, so that cached unread counts are refreshed. */
async function write(
  caller: Caller,
  ids: readonly string[],
  state: { readTo?: string },
  asRead: Condition = {},
): Promise<boolean> {
  if (ids.length === 0) return true
  const { organisationId, userId } = caller
  const marks = ids.map((id) => patch(keys.feed(organisationId, userId, id), { set: { isRead: true } }))
  const set = { ...state, revision: newNonce(), ttl: nowSeconds() + keepSeconds }
  const writes = [...marks, upsert(keys.feedState(organisationId, userId), { set }, asRead)]
  const detail = state.readTo === undefined ? `${ids.length} marked as read` : 'All marked as read'
  const audit = { action: 'notification.read', resource: userId, detail }
  return (await commit(caller, { writes, audit })) === undefined
}
