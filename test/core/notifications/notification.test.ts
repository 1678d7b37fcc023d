import { eventNames } from '@platform/contract/event'
import { newId } from '@platform/core/id'
import { claimCooldown } from '@platform/core/notifications/cooldown'
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
  minute,
  notificationIds,
  notificationTypes,
  organisationWithUsers,
} from '../support/notifications.ts'
import { commitEffects, drainOutbox, pendingRecords, runBeforeCommit, statusChangedEffect } from '../support/outbox.ts'

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
  for (const user of [withoutPermissions, otherTenant]) expect(await notificationTypes(user)).toEqual([])
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
  expect(await notificationTypes(operator)).toEqual(expected)
})

test('notifies the submitter of a failed job, and of a batch instead of its jobs', async () => {
  const { organisationId, admin, operator } = await organisationWithUsers()
  const { userId } = operator
  const newest = async (...effects: Effects[]) => {
    advanceClock(1)
    await commitAndDrain(organisationId, ...effects)
    return (await listNotifications(operator)).items[0]
  }
  const ofBatch = jobFailedEffect(userId, { batchId: newId('batch') })
  expect(await newest(jobFailedEffect(userId), ofBatch)).toMatchObject({
    type: 'JobFailed',
    severity: 'warning',
    body: 'The script ended with an error. Exit code 3.',
  })
  const deadLettered = jobFailedEffect(userId, { statusReason: 'dead_lettered', exitCode: undefined })
  expect(await newest(deadLettered)).toMatchObject({ body: 'It could not be delivered to the relay.' })
  expect(await newest(batchFinished(userId, { completed: 498, failed: 2 }))).toMatchObject({
    type: 'BatchFinished',
    body: '498 completed, 2 failed, 0 cancelled.',
  })
  expect(await notificationTypes(operator)).toEqual(['BatchFinished', 'JobFailed', 'JobFailed'])
  expect(await notificationTypes(admin)).toEqual([])
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
  expect(await notificationTypes(admin)).toEqual(['SecurityAlert'])
  const session = { userId: operator.userId, sessionId: newId('sess') }
  await commitAndDrain(organisationId, eventEffect('session.reuse_detected', session))
  expect(await notificationTypes(operator)).toEqual(['SecurityAlert'])
  expect(await notificationTypes(admin)).toHaveLength(1)
  expect(await notificationTypes(auditor)).toEqual([])
})

test('notifies the creator of a disabled webhook and user administrators, once each', async () => {
  const { organisationId, admin, operator, auditor } = await organisationWithUsers()
  const disabled = (createdBy: string) =>
    eventEffect('webhook.disabled', { webhookId: newId('hook'), url: 'https://example.com/hook', createdBy })
  await commitAndDrain(organisationId, disabled(operator.userId))
  for (const user of [admin, operator]) expect(await notificationTypes(user)).toEqual(['WebhookDisabled'])
  expect(await notificationTypes(auditor)).toEqual([])
  await commitAndDrain(organisationId, disabled(admin.userId))
  expect(await notificationTypes(admin)).toHaveLength(2)
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
])('notifies users who may install modules of %s %j', async (name, data, type, title) => {
  const { organisationId, admin } = await organisationWithUsers()
  const installer = await newCaller(organisationId, 'PlatformAdmin')
  await commitAndDrain(organisationId, eventEffect(name, { moduleId: 'hello', version: '1.0.0', ...data }))
  expect((await listNotifications(installer)).items).toMatchObject([{ type, title, resource: 'hello' }])
  expect(await notificationTypes(admin)).toEqual([])
})

test('creates no notification for failed operations and all other events', async () => {
  const { organisationId, admin, operator } = await organisationWithUsers()
  const operation = { type: 'ModuleInstall', clusterId: undefined }
  await commitAndDrain(organisationId, jobFailedEffect(operator.userId, operation))
  expect(await notificationTypes(operator)).toEqual([])
  const notified =
    /^(cluster\.status_changed|job\.failed|batch\.finished|\w+\.reuse_detected|webhook\.disabled|module\.(installed|failed|heartbeat_missed)|update\.(available|completed|failed|rolled_back))$/
  const others = eventNames.filter((name) => !notified.test(name))
  expect(others.length).toBe(eventNames.length - 13)
  const data = { userId: admin.userId, createdBy: admin.userId }
  await commitAndDrain(organisationId, ...others.map((name) => eventEffect(name, data)))
  expect(await notificationTypes(admin)).toEqual([])
})

test('notifies of each type about a cluster once in 15 minutes', async () => {
  const { organisationId, operator } = await organisationWithUsers()
  const clusterId = newId('clus')
  for (let round = 0; round < 4; round++) {
    await commitAndDrain(organisationId, statusChangedEffect(clusterId, 'Healthy', 'Offline'))
    await commitAndDrain(organisationId, statusChangedEffect(clusterId, 'Offline', 'Healthy'))
    advanceClock(4 * minute)
  }
  expect((await notificationTypes(operator)).toSorted()).toEqual(['ClusterOffline', 'ClusterRecovered'])
  await commitAndDrain(organisationId, statusChangedEffect(newId('clus'), 'Healthy', 'Offline'))
  expect(await notificationTypes(operator)).toHaveLength(3)
  await commitAndDrain(organisationId, statusChangedEffect(clusterId, 'Healthy', 'Offline'))
  expect(await notificationTypes(operator)).toHaveLength(4)
})

test('repeated projections create the same notifications despite cooldowns', async () => {
  const { organisationId, operator } = await organisationWithUsers()
  const clusterId = newId('clus')
  for (const pauseMs of [10 * minute, 16 * minute, 0]) {
    await commitEffects({ kind: 'system', organisationId }, statusChangedEffect(clusterId, 'Healthy', 'Offline'))
    advanceClock(pauseMs)
  }
  const records = await pendingRecords(organisationId)
  expect(records).toHaveLength(3)
  await runBeforeCommit(organisationId, records)
  const ids = await notificationIds(operator)
  // The events are at 0, 10 and 26 minutes.
  expect(ids).toHaveLength(2)
  await Promise.all([runBeforeCommit(organisationId, records), runBeforeCommit(organisationId, records)])
  await drainOutbox(organisationId)
  expect(await notificationIds(operator)).toEqual(ids)
})

test('creates a notification whose projection crashed after it claimed the cooldown', async () => {
  const { organisationId, operator } = await organisationWithUsers()
  const clusterId = newId('clus')
  await commitEffects({ kind: 'system', organisationId }, statusChangedEffect(clusterId, 'Healthy', 'Offline'))
  const [record] = await pendingRecords(organisationId)
  const { atMs = 0, events = [] } = record ?? {}
  const context = { organisationId, clusterId, type: 'ClusterOffline', eventId: events[0]?.id ?? '', atMs }
  expect(await claimCooldown(context)).toBe(true)
  await drainOutbox(organisationId)
  expect(await notificationTypes(operator)).toEqual(['ClusterOffline'])
})

test('a cooldown extends in both directions, per organisation, cluster and type', async () => {
  const context = { organisationId: newId('org'), clusterId: newId('clus'), type: 'ClusterOffline' }
  const claimAt = (minutes: number, more: object = {}) =>
    claimCooldown({ ...context, eventId: newId('evt'), atMs: minutes * minute, ...more })
  const claims = await Promise.all(Array.from({ length: 5 }, () => claimAt(100)))
  expect(claims.filter(Boolean)).toHaveLength(1)
  expect([await claimAt(86), await claimAt(114)]).toEqual([false, false])
  expect([await claimAt(84), await claimAt(115)]).toEqual([true, true])
  for (const more of [{ type: 'ClusterRecovered' }, { clusterId: newId('clus') }, { organisationId: newId('org') }]) {
    expect(await claimAt(100, more)).toBe(true)
  }
})

test('creates hundreds of entries in four concurrent transactions, once each', async () => {
  const { organisationId, operator } = await organisationWithUsers()
  await commitEffects(operator, jobFailedEffect(operator.userId))
  const record = (await pendingRecords(organisationId)).find(({ events }) => events.length > 0)!
  const events = Array.from({ length: 650 }, () => ({ ...record.events[0]!, id: newId('evt') }))
  const project = async () => notificationProjection.beforeCommit?.(organisationId, [{ ...record, events }])
  expect(await maxConcurrentTransactions(project)).toBe(4)
  await project()
  expect((await listNotifications(operator)).totalCount).toBe(650)
})
