import { eventNames } from '@platform/contract/event'
import { claimCooldown } from '@platform/core/notifications/cooldown'
import { newId } from '@platform/core/id'
import { notificationProjection } from '@platform/core/notifications/projection'
import { type Effects } from '@platform/core/outbox/record'
import { expect, test } from 'vitest'
import { newCaller } from '../../support/fixtures.ts'
import { runBeforeCommit, drainOutbox, statusChangedEffect, commitEffects, pendingRecords } from '../support/outbox.ts'
import { maxConcurrentTransactions } from '../../support/store-calls.ts'
import {
  eventEffect,
  commitAndDrain,
  notificationIds,
  jobFailedEffect,
  advanceClock,
  minute,
  organisationWithUsers,
  listNotifications,
  notificationTypes,
} from '../support/notifications.ts'

const batchFinished = (createdBy: string, counts: object): Effects =>
  eventEffect('batch.finished', {
    batchId: newId('batch'),
    counts: { queued: 0, running: 0, completed: 0, failed: 0, cancelled: 0, ...counts },
    createdBy,
  })

test('a change of a cluster’s status is told to all who may read clusters, and to nobody else', async () => {
  const { organisationId, admin, operator, auditor, withoutPermissions: nobody } = await organisationWithUsers()
  const stranger = await newCaller(newId('org'), 'OrgAdmin')
  const clusterId = newId('clus')
  await commitAndDrain(organisationId, statusChangedEffect(clusterId, 'Healthy', 'Degraded'))
  for (const user of [admin, operator, auditor]) {
    expect(await listNotifications(user)).toEqual({
      items: [
        {
          id: expect.stringMatching(/^notif_/),
          type: 'ClusterHealthDegraded',
          title: 'Cluster berlin-1 is degraded',
          body: 'It was Healthy before.',
          severity: 'warning',
          resource: clusterId,
          read: false,
          createdAt: expect.stringMatching(/^\d{4}-.*Z$/),
        },
      ],
      totalCount: 1,
      unreadCount: 1,
      page: 1,
      pageSize: 100,
    })
  }
  for (const user of [nobody, stranger]) expect(await notificationTypes(user)).toEqual([])
})

test.each([
  ['Healthy', 'Degraded', ['ClusterHealthDegraded']],
  ['Degraded', 'Offline', ['ClusterOffline']],
  ['Healthy', 'Offline', ['ClusterOffline']],
  ['Offline', 'Healthy', ['ClusterRecovered']],
  ['Degraded', 'Healthy', ['ClusterRecovered']],
  ['Pending', 'Healthy', []],
  ['Pending', 'Degraded', ['ClusterHealthDegraded']],
])('a cluster that goes from %s to %s tells %j', async (from, to, expected) => {
  const { organisationId, operator } = await organisationWithUsers()
  await commitAndDrain(organisationId, statusChangedEffect(newId('clus'), from, to))
  expect(await notificationTypes(operator)).toEqual(expected)
})

test('a job that fails is told to its submitter; one of a batch is not, the batch is', async () => {
  const { organisationId, admin, operator } = await organisationWithUsers()
  await commitAndDrain(
    organisationId,
    jobFailedEffect(operator.userId),
    jobFailedEffect(operator.userId, { batchId: newId('batch') }),
  )
  expect(await notificationTypes(operator)).toEqual(['JobFailed'])
  const { items } = await listNotifications(operator)
  expect(items[0]).toMatchObject({ severity: 'warning', body: 'The script ended with an error. Exit code 3.' })
  advanceClock(1)
  await commitAndDrain(
    organisationId,
    jobFailedEffect(operator.userId, { statusReason: 'dead_lettered', exitCode: undefined }),
  )
  expect((await listNotifications(operator)).items[0]?.body).toBe('It could not be delivered to the relay.')
  advanceClock(1)
  await commitAndDrain(organisationId, batchFinished(operator.userId, { completed: 498, failed: 2 }))
  expect((await listNotifications(operator)).items[0]).toMatchObject({
    type: 'BatchFinished',
    body: '498 completed, 2 failed, 0 cancelled.',
  })
  expect(await notificationTypes(admin)).toEqual([])
})

test.each([
  [{ completed: 5 }, 'info'],
  [{ completed: 5, cancelled: 1 }, 'info'],
  [{ completed: 4, failed: 1 }, 'warning'],
  [{ failed: 5 }, 'critical'],
])('a batch that finished with %j is %s', async (counts, severity) => {
  const { organisationId, operator } = await organisationWithUsers()
  await commitAndDrain(organisationId, batchFinished(operator.userId, counts))
  expect((await listNotifications(operator)).items[0]?.severity).toBe(severity)
})

test('security alerts go to the user concerned, or to those who manage users', async () => {
  const { organisationId, admin, operator, auditor } = await organisationWithUsers()
  const enrollment = { clusterId: newId('clus'), enrollmentId: newId('enroll') }
  await commitAndDrain(organisationId, eventEffect('enrollment.reuse_detected', enrollment))
  expect(await notificationTypes(admin)).toEqual(['SecurityAlert'])
  await commitAndDrain(
    organisationId,
    eventEffect('session.reuse_detected', { userId: operator.userId, sessionId: newId('sess') }),
  )
  expect(await notificationTypes(operator)).toEqual(['SecurityAlert'])
  expect(await notificationTypes(admin)).toHaveLength(1)
  expect(await notificationTypes(auditor)).toEqual([])
})

test('a webhook that is switched off is told to its maker and to those who manage users, once each', async () => {
  const { organisationId, admin, operator, auditor } = await organisationWithUsers()
  const data = { webhookId: newId('hook'), url: 'https://example.com/hook' }
  await commitAndDrain(organisationId, eventEffect('webhook.disabled', { ...data, createdBy: operator.userId }))
  for (const user of [admin, operator]) expect(await notificationTypes(user)).toEqual(['WebhookDisabled'])
  expect(await notificationTypes(auditor)).toEqual([])
  await commitAndDrain(organisationId, eventEffect('webhook.disabled', { ...data, createdBy: admin.userId }))
  expect(await notificationTypes(admin)).toHaveLength(2)
})

test.each([
  ['module.installed', { jobId: newId('job'), verified: true }, 'ModuleInstalled', 'Module hello was installed'],
  [
    'module.installed',
    { jobId: newId('job'), verified: true, previousVersion: '0.9.0' },
    'ModuleInstalled',
    'Module hello was upgraded',
  ],
  ['module.failed', { code: 'PLAT-MOD-5008', message: 'It crashed.' }, 'ModuleFailed', 'Module hello has failed'],
  [
    'module.failed',
    { jobId: newId('job'), message: 'No.' },
    'ModuleFailed',
    'Module hello 1.0.0 could not be installed',
  ],
  ['module.heartbeat_missed', { missed: 2 }, 'ModuleFailed', 'Module hello does not respond'],
])('%s is told to those who install modules', async (name, data, type, title) => {
  const { organisationId, admin } = await organisationWithUsers()
  const installer = await newCaller(organisationId, 'PlatformAdmin')
  await commitAndDrain(organisationId, eventEffect(name, { moduleId: 'hello', version: '1.0.0', ...data }))
  expect((await listNotifications(installer)).items).toMatchObject([{ type, title, resource: 'hello' }])
  expect(await notificationTypes(admin)).toEqual([])
})

test('a job of the platform itself that fails tells by its own event, not as a job of somebody', async () => {
  const { organisationId, operator } = await organisationWithUsers()
  await commitAndDrain(
    organisationId,
    jobFailedEffect(operator.userId, { type: 'ModuleInstall', clusterId: undefined }),
  )
  expect(await notificationTypes(operator)).toEqual([])
})

test('all other events tell nobody', async () => {
  const { organisationId, admin } = await organisationWithUsers()
  const telling =
    /^(cluster\.status_changed|job\.failed|batch\.finished|\w+\.reuse_detected|webhook\.disabled|module\.(installed|failed|heartbeat_missed)|update\.(available|completed|failed|rolled_back))$/
  const others = eventNames.filter((name) => !telling.test(name))
  expect(others.length).toBe(eventNames.length - 13)
  await commitAndDrain(
    organisationId,
    ...others.map((name) => eventEffect(name, { userId: admin.userId, createdBy: admin.userId })),
  )
  expect(await notificationTypes(admin)).toEqual([])
})

test('a cluster that goes up and down is told of once in 15 minutes for each type', async () => {
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

test('what is prepared again tells the same: nothing twice, nothing that the cool-down had kept back', async () => {
  const { organisationId, operator } = await organisationWithUsers()
  const clusterId = newId('clus')
  for (const pauseMs of [10 * minute, 16 * minute, 0]) {
    await commitEffects({ kind: 'system', organisationId }, statusChangedEffect(clusterId, 'Healthy', 'Offline'))
    advanceClock(pauseMs)
  }
  const records = await pendingRecords(organisationId)
  expect(records).toHaveLength(3)
  await runBeforeCommit(organisationId, records)
  const told = await notificationIds(operator)
  // The second came ten minutes after the first; the third 26 minutes after the first.
  expect(told).toHaveLength(2)
  await Promise.all([runBeforeCommit(organisationId, records), runBeforeCommit(organisationId, records)])
  await drainOutbox(organisationId)
  expect(await notificationIds(operator)).toEqual(told)
})

test('what the cool-down let through is told though everything was lost between the two', async () => {
  const { organisationId, operator } = await organisationWithUsers()
  const clusterId = newId('clus')
  await commitEffects({ kind: 'system', organisationId }, statusChangedEffect(clusterId, 'Healthy', 'Offline'))
  const [record] = await pendingRecords(organisationId)
  const { atMs = 0, events = [] } = record ?? {}
  const occasion = { organisationId, clusterId, type: 'ClusterOffline', eventId: events[0]?.id ?? '', atMs }
  expect(await claimCooldown(occasion)).toBe(true)
  await drainOutbox(organisationId)
  expect(await notificationTypes(operator)).toEqual(['ClusterOffline'])
})

test('the cool-down counts from either side, one at a time passes, and types and clusters do not meet', async () => {
  const occasion = {
    organisationId: newId('org'),
    clusterId: newId('clus'),
    type: 'ClusterOffline',
    atMs: 100 * minute,
  }
  const asks = (eventId: string, atMs: number, more: object = {}) =>
    claimCooldown({ ...occasion, eventId, atMs, ...more })
  const all = await Promise.all(Array.from({ length: 5 }, (_, index) => asks(`same time ${index}`, 100 * minute)))
  expect(all.filter(Boolean)).toHaveLength(1)
  expect(await asks('a little before', 86 * minute)).toBe(false)
  expect(await asks('a little after', 114 * minute)).toBe(false)
  expect(await asks('long before', 84 * minute)).toBe(true)
  expect(await asks('long after', 115 * minute)).toBe(true)
  expect(await asks('another type', 100 * minute, { type: 'ClusterRecovered' })).toBe(true)
  expect(await asks('another cluster', 100 * minute, { clusterId: newId('clus') })).toBe(true)
  expect(await asks('another organisation', 100 * minute, { organisationId: newId('org') })).toBe(true)
})

test('many entries are made in a few transactions at once, each entry once', async () => {
  const { organisationId, operator } = await organisationWithUsers()
  await commitEffects(operator, jobFailedEffect(operator.userId))
  const record = (await pendingRecords(organisationId)).find(({ events }) => events.length > 0)
  const [failed] = record?.events ?? []
  if (record === undefined || failed === undefined) throw new Error('Nothing is told.')
  const events = Array.from({ length: 650 }, () => ({ ...failed, id: newId('evt') }))
  const prepareAll = async () => notificationProjection.beforeCommit?.(organisationId, [{ ...record, events }])
  expect(await maxConcurrentTransactions(prepareAll)).toBe(4)
  await prepareAll()
  expect((await listNotifications(operator)).totalCount).toBe(650)
})
