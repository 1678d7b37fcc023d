import * as Audit from '@platform/core/audit/audit'
import type { Caller } from '@platform/core/caller'
import { newId } from '@platform/core/id'
import { markRead } from '@platform/core/notifications/notification'
import { expect, test } from 'vitest'
import { advanceClock } from '../../support/clock.ts'
import {
  commitAndDrain,
  jobFailedEffect,
  listNotifications,
  minute,
  notificationIds,
  organisationWithUsers,
} from '../support/notifications.ts'
import {
  auditEntries,
  commitEffects,
  drainOutbox,
  pendingRecords,
  runBeforeCommit,
  statusChangedEffect,
  writeOutboxRecords,
} from '../support/outbox.ts'

const dayMs = 24 * 60 * minute
const unreadCount = async (caller: Caller): Promise<number> => (await listNotifications(caller)).unreadCount

/** A user with unread notifications. */
async function userWithUnread(count: number) {
  const { organisationId, operator } = await organisationWithUsers()
  const effects = Array.from({ length: count }, () => jobFailedEffect(operator.userId))
  for (let first = 0; first < count; first += 20) {
    advanceClock(10)
    await writeOutboxRecords({ kind: 'system', organisationId }, effects.slice(first, first + 20))
  }
  await drainOutbox(organisationId)
  return operator
}

test('repeated projections keep the read state', async () => {
  const { organisationId, operator } = await organisationWithUsers()
  await commitEffects({ kind: 'system', organisationId }, jobFailedEffect(operator.userId))
  const records = await pendingRecords(organisationId)
  await runBeforeCommit(organisationId, records)
  await markRead(operator, { ids: await notificationIds(operator) })
  expect(await unreadCount(operator)).toBe(0)
  await runBeforeCommit(organisationId, records)
  await drainOutbox(organisationId)
  expect(await listNotifications(operator)).toMatchObject({ totalCount: 1, unreadCount: 0 })
})

test('pages contain each notification once, newest first, with counts of the filtered set', async () => {
  const user = await userWithUnread(25)
  const ids = await notificationIds(user)
  expect(ids).toEqual(ids.toSorted().toReversed())
  await markRead(user, { ids: ids.filter((_, index) => index % 5 === 0) })
  const pagesOf = async (unreadOnly: boolean, pages: number[], pageSize: number) =>
    Promise.all(pages.map((page) => listNotifications(user, { unreadOnly, page, pageSize })))
  const all = await pagesOf(false, [1, 2, 3, 4], 10)
  expect(all.flatMap(({ items }) => items.map(({ id }) => id))).toEqual(ids)
  for (const page of all) expect(page).toMatchObject({ totalCount: 25, unreadCount: 20 })
  const unread = await pagesOf(true, [1, 2, 3], 8)
  expect(unread.flatMap(({ items }) => items.map(({ id }) => id))).toEqual(ids.filter((_, index) => index % 5 !== 0))
  for (const page of unread) expect(page).toMatchObject({ totalCount: 20, unreadCount: 20 })
})

test('filters by type and severity, and counts all unread notifications regardless of the filter', async () => {
  const { organisationId, operator } = await organisationWithUsers()
  const statusEffects = ['Offline', 'Degraded'].map((status) => statusChangedEffect(newId('clus'), 'Healthy', status))
  const jobEffects = [jobFailedEffect(operator.userId), jobFailedEffect(operator.userId)]
  await commitAndDrain(organisationId, ...statusEffects, ...jobEffects)
  for (const [filter, types] of [
    [{ type: 'JobFailed' }, ['JobFailed', 'JobFailed']],
    [{ type: 'ClusterOffline' }, ['ClusterOffline']],
    [{ severity: 'critical' }, ['ClusterOffline']],
    [{ severity: 'critical', type: 'JobFailed' }, []],
    [{ type: 'UpdateFailed' }, []],
    [{ unreadOnly: true, type: 'ClusterHealthDegraded' }, ['ClusterHealthDegraded']],
  ] as const) {
    const page = await listNotifications(operator, filter)
    expect(page.items.map(({ type }) => type)).toEqual(types)
    expect([page.totalCount, page.unreadCount]).toEqual([types.length, 4])
  }
})

test('marks only own notifications by id, idempotently', async () => {
  const [user, other] = [await userWithUnread(3), await userWithUnread(1)]
  const [first = '', second = ''] = await notificationIds(user)
  const [foreign = ''] = await notificationIds(other)
  await markRead(user, { ids: [second, second, newId('notif'), foreign, '', '~STATE', 'x'.repeat(200)] })
  await markRead(user, { ids: [second] })
  const { items } = await listNotifications(user)
  expect(items.map(({ read }) => read)).toEqual([false, true, false])
  expect(await unreadCount(other)).toBe(1)
  await markRead(user, {})
  await markRead(user, { ids: [] })
  expect(await unreadCount(user)).toBe(2)
  await markRead(user, { markAllRead: false, ids: [first] })
  expect(await unreadCount(user)).toBe(1)
})

test('adds one audit entry for marking, and none if nothing changes', async () => {
  const user = await userWithUnread(2)
  const ids = await notificationIds(user)
  for (let round = 0; round < 3; round++) await markRead(user, { ids })
  await markRead(user, { markAllRead: true })
  await drainOutbox(user.organisationId)
  const entries = await auditEntries(user)
  expect(entries.map(({ action, actor, detail }) => [action, actor.id, detail])).toEqual([
    ['notification.read', user.userId, '2 marked as read'],
  ])
})

test.each([3, 90, 91, 250])('marks all of %i notifications as read, and leaves later ones unread', async (count) => {
  const user = await userWithUnread(count)
  expect(await unreadCount(user)).toBe(count)
  await markRead(user, { markAllRead: true, ids: [newId('notif')] })
  expect(await listNotifications(user)).toMatchObject({ totalCount: count, unreadCount: 0 })
  advanceClock(1)
  await commitAndDrain(user.organisationId, jobFailedEffect(user.userId))
  const { items, ...page } = await listNotifications(user)
  expect([page.unreadCount, items[0]?.read, items[1]?.read]).toEqual([1, false, true])
  const unread = await listNotifications(user, { unreadOnly: true })
  expect(unread).toMatchObject({ totalCount: 1, items: [{ id: items[0]?.id }] })
  await markRead(user, { markAllRead: true })
  expect(await unreadCount(user)).toBe(0)
})

test('leaves a late notification unread that a slow clock sorts among read ones', async () => {
  const user = await userWithUnread(5)
  advanceClock(-minute)
  await commitEffects({ kind: 'system', organisationId: user.organisationId }, jobFailedEffect(user.userId))
  advanceClock(minute)
  await markRead(user, { markAllRead: true })
  await drainOutbox(user.organisationId)
  const { items, ...page } = await listNotifications(user)
  expect([page.unreadCount, items[0]?.read]).toEqual([1, true])
})

test('marks all existing notifications while new ones arrive', async () => {
  const user = await userWithUnread(100)
  const existing = new Set(await notificationIds(user))
  const arrivals = Array.from({ length: 20 }, () => commitAndDrain(user.organisationId, jobFailedEffect(user.userId)))
  await Promise.all([...arrivals, ...Array.from({ length: 3 }, () => markRead(user, { markAllRead: true }))])
  await drainOutbox(user.organisationId)
  const { items } = await listNotifications(user, { unreadOnly: true })
  expect(items.filter(({ id }) => existing.has(id))).toEqual([])
  expect((await listNotifications(user)).totalCount).toBe(120)
  await markRead(user, { markAllRead: true })
  expect(await unreadCount(user)).toBe(0)
  expect(await Audit.verify(user, { after: 0 })).toMatchObject({ valid: true })
})

test('lists and counts notifications for 90 days', async () => {
  const { organisationId, operator } = await organisationWithUsers()
  await commitAndDrain(organisationId, jobFailedEffect(operator.userId))
  advanceClock(89 * dayMs)
  await commitAndDrain(organisationId, jobFailedEffect(operator.userId))
  expect(await listNotifications(operator)).toMatchObject({ totalCount: 2, unreadCount: 2 })
  advanceClock(dayMs + minute)
  const items = [{ type: 'JobFailed' }]
  expect(await listNotifications(operator)).toMatchObject({ totalCount: 1, unreadCount: 1, items })
})
