import * as Audit from '@platform/core/audit/audit'
import { type Caller } from '@platform/core/caller'
import { newId } from '@platform/core/id'
import * as Notification from '@platform/core/notifications/notification'
import { expect, test } from 'vitest'
import { newCaller } from '../../support/fixtures.ts'
import {
  auditEffect,
  auditEntries,
  runBeforeCommit,
  drainOutbox,
  statusChangedEffect,
  commitEffects,
  writeOutboxRecords,
  pendingRecords,
} from '../support/outbox.ts'
import {
  commitAndDrain,
  notificationIds,
  jobFailedEffect,
  advanceClock,
  minute,
  organisationWithUsers,
  listNotifications,
} from '../support/notifications.ts'

const day = 24 * 60 * minute
const unread = async (caller: Caller): Promise<number> => (await listNotifications(caller)).unreadCount

test('one that was read stays read though it is prepared again', async () => {
  const { organisationId, operator } = await organisationWithUsers()
  await commitEffects({ kind: 'system', organisationId }, jobFailedEffect(operator.userId))
  const records = await pendingRecords(organisationId)
  await runBeforeCommit(organisationId, records)
  await Notification.markRead(operator, { ids: await notificationIds(operator) })
  expect(await unread(operator)).toBe(0)
  await runBeforeCommit(organisationId, records)
  await drainOutbox(organisationId)
  expect(await listNotifications(operator)).toMatchObject({ totalCount: 1, unreadCount: 0 })
})

/** A user with so many unread notifications. */
async function userWith(count: number) {
  const { organisationId, operator } = await organisationWithUsers()
  const told = Array.from({ length: count }, () => jobFailedEffect(operator.userId))
  for (let first = 0; first < count; first += 20) {
    advanceClock(10)
    await writeOutboxRecords({ kind: 'system', organisationId }, told.slice(first, first + 20))
  }
  await drainOutbox(organisationId)
  return operator
}

test('pages show each notification once, newest first; counts are those of the filtered set', async () => {
  const user = await userWith(25)
  const all = await notificationIds(user)
  expect(all).toEqual(all.toSorted().toReversed())
  await Notification.markRead(user, { ids: all.filter((_, index) => index % 5 === 0) })
  const pages = await Promise.all([1, 2, 3, 4].map((page) => listNotifications(user, { page, pageSize: 10 })))
  expect(pages.flatMap(({ items }) => items.map(({ id }) => id))).toEqual(all)
  expect(pages.map(({ totalCount, unreadCount }) => [totalCount, unreadCount])).toEqual(
    [1, 2, 3, 4].map(() => [25, 20]),
  )
  const unreadPages = await Promise.all(
    [1, 2, 3].map((page) => listNotifications(user, { unreadOnly: true, page, pageSize: 8 })),
  )
  expect(unreadPages.flatMap(({ items }) => items.map(({ id }) => id))).toEqual(
    all.filter((_, index) => index % 5 !== 0),
  )
  expect(unreadPages.map(({ totalCount, unreadCount }) => [totalCount, unreadCount])).toEqual(
    [1, 2, 3].map(() => [20, 20]),
  )
})

test('type and severity filter what is listed and counted; the unread are counted whatever the filter', async () => {
  const { organisationId, operator } = await organisationWithUsers()
  const offline = statusChangedEffect(newId('clus'), 'Healthy', 'Offline')
  const degraded = statusChangedEffect(newId('clus'), 'Healthy', 'Degraded')
  await commitAndDrain(
    organisationId,
    jobFailedEffect(operator.userId),
    offline,
    degraded,
    jobFailedEffect(operator.userId),
  )
  const found = async (filter: object) => {
    const { items, totalCount, unreadCount } = await listNotifications(operator, filter)
    expect([items.length, unreadCount]).toEqual([totalCount, 4])
    return items.map(({ type }) => type)
  }
  expect(await found({ type: 'JobFailed' })).toEqual(['JobFailed', 'JobFailed'])
  expect(await found({ type: 'ClusterOffline' })).toEqual(['ClusterOffline'])
  expect(await found({ severity: 'critical' })).toEqual(['ClusterOffline'])
  expect(await found({ severity: 'critical', type: 'JobFailed' })).toEqual([])
  expect(await found({ type: 'UpdateFailed' })).toEqual([])
  expect(await found({ unreadOnly: true, type: 'ClusterHealthDegraded' })).toEqual(['ClusterHealthDegraded'])
})

test('marking names what is read; twice is once; unknown, strange and foreign ids change nothing', async () => {
  const [user, other] = [await userWith(3), await userWith(1)]
  const [first = '', second = ''] = await notificationIds(user)
  const [foreign = ''] = await notificationIds(other)
  await Notification.markRead(user, { ids: [second, second, newId('notif'), foreign, '', '~STATE', 'x'.repeat(200)] })
  await Notification.markRead(user, { ids: [second] })
  const { items, unreadCount } = await listNotifications(user)
  expect(items.map(({ id, read: isRead }) => [id === second, isRead])).toEqual([
    [false, false],
    [true, true],
    [false, false],
  ])
  expect(unreadCount).toBe(2)
  expect(await unread(other)).toBe(1)
  await Notification.markRead(user, {})
  await Notification.markRead(user, { ids: [] })
  expect(await unread(user)).toBe(2)
  await Notification.markRead(user, { markAllRead: false, ids: [first] })
  expect(await unread(user)).toBe(1)
})

test('marking is a change like any other: it stands in the audit trail, once', async () => {
  const user = await userWith(2)
  const all = await notificationIds(user)
  for (let time = 0; time < 3; time++) await Notification.markRead(user, { ids: all })
  await drainOutbox(user.organisationId)
  const entries = await auditEntries(user)
  expect(entries.map(({ action, actor, detail }) => [action, actor.id, detail])).toEqual([
    ['notification.read', user.userId, '2 marked as read'],
  ])
})

test.each([3, 90, 91, 250])('of %i unread all are marked at once, and what arrives later is unread', async (count) => {
  const user = await userWith(count)
  expect(await unread(user)).toBe(count)
  await Notification.markRead(user, { markAllRead: true, ids: [newId('notif')] })
  expect(await listNotifications(user)).toMatchObject({ totalCount: count, unreadCount: 0 })
  advanceClock(1)
  await commitAndDrain(user.organisationId, jobFailedEffect(user.userId))
  const { items, unreadCount } = await listNotifications(user)
  expect([unreadCount, items[0]?.read, items[1]?.read]).toEqual([1, false, true])
  expect(await listNotifications(user, { unreadOnly: true })).toMatchObject({
    totalCount: 1,
    items: [{ id: items[0]?.id }],
  })
  await Notification.markRead(user, { markAllRead: true })
  expect(await unread(user)).toBe(0)
})

test('one that arrives after all were marked is unread, though a slower clock makes it look older', async () => {
  const user = await userWith(5)
  advanceClock(-minute)
  await commitEffects({ kind: 'system', organisationId: user.organisationId }, jobFailedEffect(user.userId))
  advanceClock(minute)
  await Notification.markRead(user, { markAllRead: true })
  await drainOutbox(user.organisationId)
  const { items, unreadCount } = await listNotifications(user)
  expect(unreadCount).toBe(1)
  expect(items[0]?.read).toBe(true)
})

test('marking all while more arrive loses none: whatever is unread afterwards was not there before', async () => {
  const user = await userWith(100)
  const before = new Set(await notificationIds(user))
  const arriving = Array.from({ length: 20 }, () => commitAndDrain(user.organisationId, jobFailedEffect(user.userId)))
  const marking = Array.from({ length: 3 }, () => Notification.markRead(user, { markAllRead: true }))
  await Promise.all([...arriving, ...marking])
  await drainOutbox(user.organisationId)
  const left = await listNotifications(user, { unreadOnly: true })
  expect(left.items.filter(({ id }) => before.has(id))).toEqual([])
  expect((await listNotifications(user)).totalCount).toBe(120)
  await Notification.markRead(user, { markAllRead: true })
  expect(await unread(user)).toBe(0)
  expect(await Audit.verify(user, { after: 0 })).toMatchObject({ valid: true })
})

test('after 90 days a notification is gone from the list and from all counts', async () => {
  const { organisationId, operator } = await organisationWithUsers()
  await commitAndDrain(organisationId, jobFailedEffect(operator.userId))
  advanceClock(89 * day)
  await commitAndDrain(organisationId, jobFailedEffect(operator.userId))
  expect(await listNotifications(operator)).toMatchObject({ totalCount: 2, unreadCount: 2 })
  advanceClock(1 * day + minute)
  expect(await listNotifications(operator)).toMatchObject({
    totalCount: 1,
    unreadCount: 1,
    items: [{ type: 'JobFailed' }],
  })
})

test('a user without notifications has an empty page', async () => {
  const user = await newCaller()
  expect(await listNotifications(user, { page: 3, pageSize: 10 })).toEqual({
    items: [],
    totalCount: 0,
    unreadCount: 0,
    page: 3,
    pageSize: 10,
  })
  await Notification.markRead(user, { markAllRead: true })
  await commitEffects(user, auditEffect('test.change'))
  await drainOutbox(user.organisationId)
  expect(await auditEntries(user)).toHaveLength(1)
})
