import * as Job from '@platform/core/jobs/job'
import { eventNames } from '@platform/contract/event'
import * as Audit from '@platform/core/audit/audit'
import type { Caller } from '@platform/core/caller'
import { newId } from '@platform/core/id'
import { claimCooldown } from '@platform/core/notifications/cooldown'
import { markRead } from '@platform/core/notifications/notification'
import { notificationFor } from '@platform/core/notifications/templates'
import { notificationProjection } from '@platform/core/notifications/projection'
import type { Effects } from '@platform/core/outbox/record'
import { expect, test } from 'vitest'
import { advanceClock } from '../../support/clock.ts'
import { newCaller } from '../../support/fixtures.ts'
import { maxConcurrentTransactions } from '../../support/store-calls.ts'
import {
  commitAndDrain,
  eventEffect,
  jobFailedEffect,
  listNotifications,
  minuteMs,
  readNotificationIds,
  readNotificationTypes,
  organisationWithUsers,
} from '../support/notifications.ts'
import { storeClusters } from '../support/batches.ts'
import {
  readAuditEntries,
  commitEffects,
  drainOutbox,
  readPendingRecords,
  runBeforeCommit,
  statusChangedEffect,
  writeOutboxRecords,
} from '../support/outbox.ts'

const batchFinished = (createdBy: string, counts: object): Effects =>
  eventEffect('batch.finished', {
    batchId: newId('batch'),
    counts: { queued: 0, running: 0, completed: 0, failed: 0, cancelled: 0, ...counts },
    createdBy,
  })

test('notifies all users who may read clusters of a status change, and no others', async () => {
  const { organisationId, admin, operator, auditor, withoutPermissions } = await organisationWithUsers()
  const otherTenant = await newCaller(newId('org'), 'OrgAdmin')
  const clusterId = newId('clus')
  await commitAndDrain(organisationId, statusChangedEffect(clusterId, 'Healthy', 'Degraded'))
  const notification = {
    id: expect.stringMatching(/^notif_/),
    type: 'ClusterHealthDegraded',
    title: 'Cluster berlin-1 is degraded',
    body: 'It was Healthy before.',
    severity: 'warning',
    resource: clusterId,
    read: false,
    createdAt: expect.stringMatching(/^\d{4}-.*Z$/),
  }
  const page = { items: [notification], totalCount: 1, unreadCount: 1, page: 1, pageSize: 100 }
  for (const user of [admin, operator, auditor]) expect(await listNotifications(user)).toEqual(page)
  for (const user of [withoutPermissions, otherTenant]) expect(await readNotificationTypes(user)).toEqual([])
})

test.each([
  ['Healthy', 'Degraded', ['ClusterHealthDegraded']],
  ['Degraded', 'Offline', ['ClusterOffline']],
  ['Healthy', 'Offline', ['ClusterOffline']],
  ['Offline', 'Healthy', ['ClusterRecovered']],
  ['Degraded', 'Healthy', ['ClusterRecovered']],
  ['Pending', 'Healthy', []],
  ['Pending', 'Degraded', ['ClusterHealthDegraded']],
])('a cluster status change from %s to %s creates %j', async (from, to, expected) => {
  const { organisationId, operator } = await organisationWithUsers()
  await commitAndDrain(organisationId, statusChangedEffect(newId('clus'), from, to))
  expect(await readNotificationTypes(operator)).toEqual(expected)
})

test('notifies the submitter of a failed job, and of a batch instead of its jobs', async () => {
  const { organisationId, admin, operator } = await organisationWithUsers()
  const { userId } = operator
  const newestAfter = async (...effects: Effects[]) => {
    advanceClock(1)
    await commitAndDrain(organisationId, ...effects)
    return (await listNotifications(operator)).items[0]
  }
  const batchEffect = jobFailedEffect(userId, { batchId: newId('batch') })
  const [clusterId = ''] = await storeClusters(operator, 1)
  const { id: jobId } = await Job.submit(operator, { clusterId, type: 'InvokeScript', payload: { script: 'df -h' } })
  const titledEffect = jobFailedEffect(userId, { jobId, clusterId })
  expect(await newestAfter(titledEffect)).toMatchObject({ title: `Job “df -h” failed on ${clusterId}` })
  expect(await newestAfter(jobFailedEffect(userId), batchEffect)).toMatchObject({
    type: 'JobFailed',
    title: 'A job failed',
    severity: 'warning',
    body: 'The script ended with an error. Exit code 3.',
  })
  const deadLettered = jobFailedEffect(userId, { statusReason: 'dead_lettered', exitCode: undefined })
  expect(await newestAfter(deadLettered)).toMatchObject({ body: 'It could not be delivered to the relay.' })
  expect(await newestAfter(batchFinished(userId, { completed: 498, failed: 2 }))).toMatchObject({
    type: 'BatchFinished',
    body: '498 completed, 2 failed, 0 cancelled.',
  })
  expect(await readNotificationTypes(operator)).toEqual(['BatchFinished', 'JobFailed', 'JobFailed', 'JobFailed'])
  expect(await readNotificationTypes(admin)).toEqual([])
})

test.each([
  [{ completed: 5 }, 'info'],
  [{ completed: 5, cancelled: 1 }, 'info'],
  [{ completed: 4, failed: 1 }, 'warning'],
  [{ failed: 5 }, 'critical'],
])('a batch finished with %j has severity %s', async (counts, severity) => {
  const { organisationId, operator } = await organisationWithUsers()
  await commitAndDrain(organisationId, batchFinished(operator.userId, counts))
  expect((await listNotifications(operator)).items[0]?.severity).toBe(severity)
})

test('sends security alerts to the affected user or to user administrators', async () => {
  const { organisationId, admin, operator, auditor } = await organisationWithUsers()
  const enrollment = { clusterId: newId('clus'), enrollmentId: newId('enroll') }
  await commitAndDrain(organisationId, eventEffect('enrollment.reuse_detected', enrollment))
  expect(await readNotificationTypes(admin)).toEqual(['SecurityAlert'])
  const session = { userId: operator.userId, sessionId: newId('sess') }
  await commitAndDrain(organisationId, eventEffect('session.reuse_detected', session))
  expect(await readNotificationTypes(operator)).toEqual(['SecurityAlert'])
  expect(await readNotificationTypes(admin)).toHaveLength(1)
  expect(await readNotificationTypes(auditor)).toEqual([])
})

test('notifies the creator of a disabled webhook and user administrators, once each', async () => {
  const { organisationId, admin, operator, auditor } = await organisationWithUsers()
  const disabledEvent = (createdBy: string) =>
    eventEffect('webhook.disabled', { webhookId: newId('hook'), url: 'https://example.com/hook', createdBy })
  await commitAndDrain(organisationId, disabledEvent(operator.userId))
  for (const user of [admin, operator]) expect(await readNotificationTypes(user)).toEqual(['WebhookDisabled'])
  expect(await readNotificationTypes(auditor)).toEqual([])
  await commitAndDrain(organisationId, disabledEvent(admin.userId))
  expect(await readNotificationTypes(admin)).toHaveLength(2)
})

const jobId = newId('job')
test.each([
  ['module.installed', { jobId, verified: true }, 'ModuleInstalled', 'Module hello was installed'],
  [
    'module.installed',
    { jobId, verified: true, previousVersion: '0.9.0' },
    'ModuleInstalled',
    'Module hello was upgraded',
  ],
  ['module.failed', { code: 'PLAT-MOD-5008', message: 'It crashed.' }, 'ModuleFailed', 'Module hello has failed'],
  ['module.failed', { jobId, message: 'No.' }, 'ModuleFailed', 'Module hello 1.0.0 could not be installed'],
  ['module.heartbeat_missed', { missed: 2 }, 'ModuleFailed', 'Module hello does not respond'],
  [
    'module.heartbeat_missed',
    { missed: 2, backgroundJobId: 'tick' },
    'ModuleFailed',
    'A background job of module hello fails',
  ],
])('notifies users who may install modules of %s %j', async (name, data, type, title) => {
  const { organisationId, admin } = await organisationWithUsers()
  const installer = await newCaller(organisationId, 'PlatformAdmin')
  await commitAndDrain(organisationId, eventEffect(name, { moduleId: 'hello', version: '1.0.0', ...data }))
  expect((await listNotifications(installer)).items).toMatchObject([{ type, title, resource: 'hello' }])
  expect(await readNotificationTypes(admin)).toEqual([])
})

test('creates no notification for failed operations and all other events', async () => {
  const { organisationId, admin, operator } = await organisationWithUsers()
  const operation = { type: 'ModuleInstall', clusterId: undefined }
  await commitAndDrain(organisationId, jobFailedEffect(operator.userId, operation))
  expect(await readNotificationTypes(operator)).toEqual([])
  const notified =
    /^(cluster\.status_changed|job\.failed|batch\.finished|\w+\.(reuse|duplicate)_detected|webhook\.disabled|user\.password_reset|identity\.provider_failed|organisation\.recovered|token\.created|module\.(installed|failed|heartbeat_missed)|update\.(available|completed|failed|rolled_back))$/
  const others = eventNames.filter((name) => !notified.test(name))
  expect(others.length).toBe(eventNames.length - 18)
  const data = { userId: admin.userId, createdBy: admin.userId }
  await commitAndDrain(organisationId, ...others.map((name) => eventEffect(name, data)))
  expect(await readNotificationTypes(admin)).toEqual([])
})

test('repeated projections create the same notifications despite cooldowns', async () => {
  const { organisationId, operator } = await organisationWithUsers()
  const clusterId = newId('clus')
  for (const pauseMs of [10 * minuteMs, 16 * minuteMs, 0]) {
    await commitEffects({ kind: 'system', organisationId }, statusChangedEffect(clusterId, 'Healthy', 'Offline'))
    advanceClock(pauseMs)
  }
  const records = await readPendingRecords(organisationId)
  expect(records).toHaveLength(3)
  await runBeforeCommit(organisationId, records)
  const ids = await readNotificationIds(operator)
  // The events are at 0, 10 and 26 minutes.
  expect(ids).toHaveLength(2)
  await Promise.all([runBeforeCommit(organisationId, records), runBeforeCommit(organisationId, records)])
  await drainOutbox(organisationId)
  expect(await readNotificationIds(operator)).toEqual(ids)
})

test('creates a notification whose projection crashed after it claimed the cooldown', async () => {
  const { organisationId, operator } = await organisationWithUsers()
  const clusterId = newId('clus')
  await commitEffects({ kind: 'system', organisationId }, statusChangedEffect(clusterId, 'Healthy', 'Offline'))
  const [record] = await readPendingRecords(organisationId)
  const { atMs = 0, events = [] } = record ?? {}
  const context = { organisationId, clusterId, type: 'ClusterOffline', eventId: events[0]?.id ?? '', atMs }
  expect(await claimCooldown(context)).toBe(true)
  await drainOutbox(organisationId)
  expect(await readNotificationTypes(operator)).toEqual(['ClusterOffline'])
})

test('a cooldown covers the time before and after a notification, per organisation, cluster and type', async () => {
  const context = { organisationId: newId('org'), clusterId: newId('clus'), type: 'ClusterOffline' }
  const claimAt = (minutes: number, overrides: object = {}) =>
    claimCooldown({ ...context, eventId: newId('evt'), atMs: minutes * minuteMs, ...overrides })
  const claims = await Promise.all(Array.from({ length: 5 }, () => claimAt(100)))
  expect(claims.filter(Boolean)).toHaveLength(1)
  expect([await claimAt(86), await claimAt(114)]).toEqual([false, false])
  expect([await claimAt(84), await claimAt(115)]).toEqual([true, true])
  for (const overrides of [
    { type: 'ClusterRecovered' },
    { clusterId: newId('clus') },
    { organisationId: newId('org') },
  ]) {
    expect(await claimAt(100, overrides)).toBe(true)
  }
})

test('creates hundreds of entries in four concurrent transactions, once each', async () => {
  const { organisationId, operator } = await organisationWithUsers()
  await commitEffects(operator, jobFailedEffect(operator.userId))
  const record = (await readPendingRecords(organisationId)).find(({ events }) => events.length > 0)!
  const events = Array.from({ length: 650 }, () => ({ ...record.events[0]!, id: newId('evt') }))
  const project = async () => notificationProjection.beforeCommit?.(organisationId, [{ ...record, events }])
  expect(await maxConcurrentTransactions(project)).toBe(4)
  await project()
  expect((await listNotifications(operator)).totalCount).toBe(650)
})

const dayMs = 24 * 60 * minuteMs
const readUnreadCount = async (caller: Caller): Promise<number> => (await listNotifications(caller)).unreadCount

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
  const records = await readPendingRecords(organisationId)
  await runBeforeCommit(organisationId, records)
  await markRead(operator, { ids: await readNotificationIds(operator) })
  expect(await readUnreadCount(operator)).toBe(0)
  await runBeforeCommit(organisationId, records)
  await drainOutbox(organisationId)
  expect(await listNotifications(operator)).toMatchObject({ totalCount: 1, unreadCount: 0 })
})

test('pages contain each notification once, newest first, with counts of the filtered set', async () => {
  const user = await userWithUnread(25)
  const ids = await readNotificationIds(user)
  expect(ids).toEqual(ids.toSorted().toReversed())
  await markRead(user, { ids: ids.filter((_, index) => index % 5 === 0) })
  const pagesOf = async (unreadOnly: boolean, pages: number[], pageSize: number) =>
    Promise.all(pages.map((page) => listNotifications(user, { unreadOnly, page, pageSize })))
  const allPages = await pagesOf(false, [1, 2, 3, 4], 10)
  expect(allPages.flatMap(({ items }) => items.map(({ id }) => id))).toEqual(ids)
  for (const page of allPages) expect(page).toMatchObject({ totalCount: 25, unreadCount: 20 })
  const unreadPages = await pagesOf(true, [1, 2, 3], 8)
  expect(unreadPages.flatMap(({ items }) => items.map(({ id }) => id))).toEqual(
    ids.filter((_, index) => index % 5 !== 0),
  )
  for (const page of unreadPages) expect(page).toMatchObject({ totalCount: 20, unreadCount: 20 })
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
  const [user, otherUser] = [await userWithUnread(3), await userWithUnread(1)]
  const [firstId = '', secondId = ''] = await readNotificationIds(user)
  const [foreignId = ''] = await readNotificationIds(otherUser)
  await markRead(user, { ids: [secondId, secondId, newId('notif'), foreignId, '', '~STATE', 'x'.repeat(200)] })
  await markRead(user, { ids: [secondId] })
  const { items } = await listNotifications(user)
  expect(items.map(({ read }) => read)).toEqual([false, true, false])
  expect(await readUnreadCount(otherUser)).toBe(1)
  await markRead(user, {})
  await markRead(user, { ids: [] })
  expect(await readUnreadCount(user)).toBe(2)
  await markRead(user, { markAllRead: false, ids: [firstId] })
  expect(await readUnreadCount(user)).toBe(1)
})

test('adds one audit entry for marking, and none if nothing changes', async () => {
  const user = await userWithUnread(2)
  const ids = await readNotificationIds(user)
  for (let round = 0; round < 3; round++) await markRead(user, { ids })
  await markRead(user, { markAllRead: true })
  await drainOutbox(user.organisationId)
  const entries = await readAuditEntries(user)
  expect(entries.map(({ action, actor, detail }) => [action, actor.id, detail])).toEqual([
    ['notification.read', user.userId, '2 marked as read'],
  ])
})

test.each([3, 90, 91, 250])('marks all of %i notifications as read, and leaves later ones unread', async (count) => {
  const user = await userWithUnread(count)
  expect(await readUnreadCount(user)).toBe(count)
  await markRead(user, { markAllRead: true, ids: [newId('notif')] })
  expect(await listNotifications(user)).toMatchObject({ totalCount: count, unreadCount: 0 })
  advanceClock(1)
  await commitAndDrain(user.organisationId, jobFailedEffect(user.userId))
  const { items, ...page } = await listNotifications(user)
  expect([page.unreadCount, items[0]?.read, items[1]?.read]).toEqual([1, false, true])
  const unreadPage = await listNotifications(user, { unreadOnly: true })
  expect(unreadPage).toMatchObject({ totalCount: 1, items: [{ id: items[0]?.id }] })
  await markRead(user, { markAllRead: true })
  expect(await readUnreadCount(user)).toBe(0)
})

test('leaves a late notification unread that a slow clock sorts among read ones', async () => {
  const user = await userWithUnread(5)
  advanceClock(-minuteMs)
  await commitEffects({ kind: 'system', organisationId: user.organisationId }, jobFailedEffect(user.userId))
  advanceClock(minuteMs)
  await markRead(user, { markAllRead: true })
  await drainOutbox(user.organisationId)
  const { items, ...page } = await listNotifications(user)
  expect([page.unreadCount, items[0]?.read]).toEqual([1, true])
})

test('marks all existing notifications while new ones arrive', async () => {
  const user = await userWithUnread(100)
  const existingIds = new Set(await readNotificationIds(user))
  const arrivals = Array.from({ length: 20 }, () => commitAndDrain(user.organisationId, jobFailedEffect(user.userId)))
  await Promise.all([...arrivals, ...Array.from({ length: 3 }, () => markRead(user, { markAllRead: true }))])
  await drainOutbox(user.organisationId)
  const { items } = await listNotifications(user, { unreadOnly: true })
  expect(items.filter(({ id }) => existingIds.has(id))).toEqual([])
  expect((await listNotifications(user)).totalCount).toBe(120)
  await markRead(user, { markAllRead: true })
  expect(await readUnreadCount(user)).toBe(0)
  expect(await Audit.verify(user, { after: 0 })).toMatchObject({ valid: true })
})

test('lists and counts notifications for 90 days', async () => {
  const { organisationId, operator } = await organisationWithUsers()
  await commitAndDrain(organisationId, jobFailedEffect(operator.userId))
  advanceClock(89 * dayMs)
  await commitAndDrain(organisationId, jobFailedEffect(operator.userId))
  expect(await listNotifications(operator)).toMatchObject({ totalCount: 2, unreadCount: 2 })
  advanceClock(dayMs + minuteMs)
  const items = [{ type: 'JobFailed' }]
  expect(await listNotifications(operator)).toMatchObject({ totalCount: 1, unreadCount: 1, items })
})

const rightToLeft = { username: 'עדה', displayName: 'عادة' }
const longestNames = { username: 'ä'.repeat(64), displayName: 'ö'.repeat(100) }
test.each([
  [
    'user.suspended',
    { ...rightToLeft, reason: 'Gone' },
    'The sessions of \u2068عادة\u2069 (\u2068עדה\u2069) were ended',
  ],
  ['user.suspended', { ...longestNames, reason: 'Gone' }, new RegExp(`^.{16}\u2068ö{100}\u2069 .{68} were ended$`)],
  ['user.password_reset', { username: 'ada' }, 'The password of ada was reset'],
  ['token.created', { tokenId: newId('tok'), name: 'עדה' }, 'API token \u2068עדה\u2069 was created'],
])('%s names %j so that letters of any direction keep their place', (name, data, title) => {
  const notification = notificationFor({ id: '', name, subject: '', data: { userId: newId('user'), ...data } })
  expect(notification?.title).toMatch(title)
  expect(notification?.title.length).toBeLessThanOrEqual(200)
})
