import { eventNames } from '@platform/contract/event'
import { allBooks } from '@platform/core/all-books'
import * as Audit from '@platform/core/audit'
import { type Caller } from '@platform/core/caller'
import { shiftClock } from '@platform/core/clock'
import { passes } from '@platform/core/cool-down'
import { newId } from '@platform/core/id'
import * as Notification from '@platform/core/notification'
import { type Told } from '@platform/core/record'
import { afterEach, expect, test } from 'vitest'
import { callerOf } from '../support/world.ts'
import { done, entriesOf, settle, statusChanged, storedUser, tell, tellAll, waitingRecords } from './support/books.ts'

const minute = 60_000
const day = 24 * 60 * minute

let shiftedMs = 0
const later = (ms: number): void => {
  shiftedMs += ms
  shiftClock(ms)
}
afterEach(() => later(-shiftedMs))

const read = (caller: Caller, query: { unreadOnly?: boolean; page?: number; pageSize?: number } = {}) =>
  Notification.list(caller, { unreadOnly: false, page: 1, pageSize: 100, ...query })
const types = async (caller: Caller): Promise<string[]> => (await read(caller)).items.map(({ type }) => type)
const ids = async (caller: Caller): Promise<string[]> => (await read(caller)).items.map(({ id }) => id)
const unread = async (caller: Caller): Promise<number> => (await read(caller)).unreadCount

const event = (name: string, data: object): Told => ({ events: [{ name, subject: newId('clus'), data } as any] })
const jobFailed = (createdBy: string, more: object = {}): Told =>
  event('job.failed', {
    jobId: newId('job'),
    clusterId: newId('clus'),
    type: 'InvokeScript',
    createdBy,
    previousStatus: 'Running',
    statusReason: 'exit_nonzero',
    exitCode: 3,
    ...more,
  })
const batchFinished = (createdBy: string, counts: object): Told =>
  event('batch.finished', {
    batchId: newId('batch'),
    counts: { queued: 0, running: 0, completed: 0, failed: 0, cancelled: 0, ...counts },
    createdBy,
  })

/** Something happens and is booked. */
async function happens(organisationId: string, ...told: Told[]): Promise<void> {
  for (const each of told) await tell({ kind: 'system', organisationId }, each)
  await settle(organisationId)
}

/** An organisation with a user of every kind. */
async function people() {
  const organisationId = newId('org')
  const [admin, operator, auditor] = await Promise.all(
    ['OrgAdmin', 'Operator', 'Auditor'].map((role) => storedUser(organisationId, role)),
  )
  const nobody = await storedUser(organisationId, 'Unknown')
  return { organisationId, admin: admin!, operator: operator!, auditor: auditor!, nobody }
}

test('a change of a cluster’s status is told to all who may read clusters, and to nobody else', async () => {
  const { organisationId, admin, operator, auditor, nobody } = await people()
  const stranger = await storedUser(newId('org'), 'OrgAdmin')
  const clusterId = newId('clus')
  await happens(organisationId, statusChanged(clusterId, 'Healthy', 'Degraded'))
  for (const user of [admin, operator, auditor]) {
    expect(await read(user)).toEqual({
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
      ...{ totalCount: 1, unreadCount: 1, page: 1, pageSize: 100 },
    })
  }
  for (const user of [nobody, stranger]) expect(await types(user)).toEqual([])
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
  const { organisationId, operator } = await people()
  await happens(organisationId, statusChanged(newId('clus'), from, to))
  expect(await types(operator)).toEqual(expected)
})

test('a job that fails is told to its submitter; one of a batch is not, the batch is', async () => {
  const { organisationId, admin, operator } = await people()
  await happens(organisationId, jobFailed(operator.userId), jobFailed(operator.userId, { batchId: newId('batch') }))
  expect(await types(operator)).toEqual(['JobFailed'])
  const { items } = await read(operator)
  expect(items[0]).toMatchObject({ severity: 'warning', body: 'The script ended with an error. Exit code 3.' })
  later(1)
  await happens(organisationId, jobFailed(operator.userId, { statusReason: 'dead_lettered', exitCode: undefined }))
  expect((await read(operator)).items[0]?.body).toBe('It could not be handed to the relay.')
  later(1)
  await happens(organisationId, batchFinished(operator.userId, { completed: 498, failed: 2 }))
  expect((await read(operator)).items[0]).toMatchObject({
    type: 'BatchFinished',
    body: '498 completed, 2 failed, 0 cancelled.',
  })
  expect(await types(admin)).toEqual([])
})

test.each([
  [{ completed: 5 }, 'info'],
  [{ completed: 5, cancelled: 1 }, 'info'],
  [{ completed: 4, failed: 1 }, 'warning'],
  [{ failed: 5 }, 'critical'],
])('a batch that finished with %j is %s', async (counts, severity) => {
  const { organisationId, operator } = await people()
  await happens(organisationId, batchFinished(operator.userId, counts))
  expect((await read(operator)).items[0]?.severity).toBe(severity)
})

test('security alerts go to the user concerned, or to those who manage users', async () => {
  const { organisationId, admin, operator, auditor } = await people()
  const enrollment = { clusterId: newId('clus'), enrollmentId: newId('enroll') }
  await happens(organisationId, event('enrollment.reuse_detected', enrollment))
  expect(await types(admin)).toEqual(['SecurityAlert'])
  await happens(organisationId, event('session.reuse_detected', { userId: operator.userId, sessionId: newId('sess') }))
  expect(await types(operator)).toEqual(['SecurityAlert'])
  expect(await types(admin)).toHaveLength(1)
  expect(await types(auditor)).toEqual([])
})

test('a webhook that is switched off is told to its maker and to those who manage users, once each', async () => {
  const { organisationId, admin, operator, auditor } = await people()
  const data = { webhookId: newId('hook'), url: 'https://example.com/hook' }
  await happens(organisationId, event('webhook.disabled', { ...data, createdBy: operator.userId }))
  for (const user of [admin, operator]) expect(await types(user)).toEqual(['WebhookDisabled'])
  expect(await types(auditor)).toEqual([])
  await happens(organisationId, event('webhook.disabled', { ...data, createdBy: admin.userId }))
  expect(await types(admin)).toHaveLength(2)
})

test('all other events tell nobody', async () => {
  const { organisationId, admin } = await people()
  const telling = /^(cluster\.status_changed|job\.failed|batch\.finished|\w+\.reuse_detected|webhook\.disabled)$/
  const others = eventNames.filter((name) => !telling.test(name))
  expect(others.length).toBe(eventNames.length - 6)
  await happens(organisationId, ...others.map((name) => event(name, { userId: admin.userId, createdBy: admin.userId })))
  expect(await types(admin)).toEqual([])
})

test('a cluster that goes up and down is told of once in 15 minutes for each type', async () => {
  const { organisationId, operator } = await people()
  const clusterId = newId('clus')
  for (let round = 0; round < 4; round++) {
    await happens(organisationId, statusChanged(clusterId, 'Healthy', 'Offline'))
    await happens(organisationId, statusChanged(clusterId, 'Offline', 'Healthy'))
    later(4 * minute)
  }
  expect((await types(operator)).toSorted()).toEqual(['ClusterOffline', 'ClusterRecovered'])
  await happens(organisationId, statusChanged(newId('clus'), 'Healthy', 'Offline'))
  expect(await types(operator)).toHaveLength(3)
  await happens(organisationId, statusChanged(clusterId, 'Healthy', 'Offline'))
  expect(await types(operator)).toHaveLength(4)
})

test('what is prepared again tells the same: nothing twice, nothing that the cool-down had kept back', async () => {
  const { organisationId, operator } = await people()
  const clusterId = newId('clus')
  for (const pauseMs of [10 * minute, 16 * minute, 0]) {
    await tell({ kind: 'system', organisationId }, statusChanged(clusterId, 'Healthy', 'Offline'))
    later(pauseMs)
  }
  const records = await waitingRecords(organisationId)
  expect(records).toHaveLength(3)
  const prepareAll = () => Promise.all(allBooks.map(({ prepare }) => prepare?.(organisationId, records)))
  await prepareAll()
  const told = await ids(operator)
  // The second came ten minutes after the first; the third 26 minutes after the first.
  expect(told).toHaveLength(2)
  await Promise.all([prepareAll(), prepareAll()])
  await settle(organisationId)
  expect(await ids(operator)).toEqual(told)
})

test('what the cool-down let through is told though everything was lost between the two', async () => {
  const { organisationId, operator } = await people()
  const clusterId = newId('clus')
  await tell({ kind: 'system', organisationId }, statusChanged(clusterId, 'Healthy', 'Offline'))
  const [record] = await waitingRecords(organisationId)
  const { atMs = 0, events = [] } = record ?? {}
  const occasion = { organisationId, clusterId, type: 'ClusterOffline', eventId: events[0]?.id ?? '', atMs }
  expect(await passes(occasion)).toBe(true)
  await settle(organisationId)
  expect(await types(operator)).toEqual(['ClusterOffline'])
})

test('the cool-down counts from either side, one at a time passes, and types and clusters do not meet', async () => {
  const occasion = {
    organisationId: newId('org'),
    clusterId: newId('clus'),
    type: 'ClusterOffline',
    atMs: 100 * minute,
  }
  const asks = (eventId: string, atMs: number, more: object = {}) => passes({ ...occasion, eventId, atMs, ...more })
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

test('one that was read stays read though it is prepared again', async () => {
  const { organisationId, operator } = await people()
  await tell({ kind: 'system', organisationId }, jobFailed(operator.userId))
  const records = await waitingRecords(organisationId)
  for (const { prepare } of allBooks) await prepare?.(organisationId, records)
  await Notification.mark(operator, { ids: await ids(operator) })
  expect(await unread(operator)).toBe(0)
  for (const { prepare } of allBooks) await prepare?.(organisationId, records)
  await settle(organisationId)
  expect(await read(operator)).toMatchObject({ totalCount: 1, unreadCount: 0 })
})

/** A user with so many unread notifications. */
async function userWith(count: number) {
  const { organisationId, operator } = await people()
  const told = Array.from({ length: count }, () => jobFailed(operator.userId))
  for (let first = 0; first < count; first += 20) {
    later(10)
    await tellAll({ kind: 'system', organisationId }, told.slice(first, first + 20))
  }
  await settle(organisationId)
  return operator
}

test('pages show each notification once, newest first; counts are those of the filtered set', async () => {
  const user = await userWith(25)
  const all = await ids(user)
  expect(all).toEqual(all.toSorted().toReversed())
  await Notification.mark(user, { ids: all.filter((_, index) => index % 5 === 0) })
  const pages = await Promise.all([1, 2, 3, 4].map((page) => read(user, { page, pageSize: 10 })))
  expect(pages.flatMap(({ items }) => items.map(({ id }) => id))).toEqual(all)
  expect(pages.map(({ totalCount, unreadCount }) => [totalCount, unreadCount])).toEqual(Array(4).fill([25, 20]))
  const unreadPages = await Promise.all([1, 2, 3].map((page) => read(user, { unreadOnly: true, page, pageSize: 8 })))
  expect(unreadPages.flatMap(({ items }) => items.map(({ id }) => id))).toEqual(
    all.filter((_, index) => index % 5 !== 0),
  )
  expect(unreadPages.map(({ totalCount, unreadCount }) => [totalCount, unreadCount])).toEqual(Array(3).fill([20, 20]))
})

test('marking names what is read; twice is once; unknown, strange and foreign ids change nothing', async () => {
  const [user, other] = [await userWith(3), await userWith(1)]
  const [first = '', second = ''] = await ids(user)
  const [foreign = ''] = await ids(other)
  await Notification.mark(user, { ids: [second, second, newId('notif'), foreign, '', '~STATE', 'x'.repeat(200)] })
  await Notification.mark(user, { ids: [second] })
  const { items, unreadCount } = await read(user)
  expect(items.map(({ id, read: isRead }) => [id === second, isRead])).toEqual([
    [false, false],
    [true, true],
    [false, false],
  ])
  expect(unreadCount).toBe(2)
  expect(await unread(other)).toBe(1)
  await Notification.mark(user, {})
  await Notification.mark(user, { ids: [] })
  expect(await unread(user)).toBe(2)
  await Notification.mark(user, { markAllRead: false, ids: [first] })
  expect(await unread(user)).toBe(1)
})

test('marking is a change like any other: it stands in the audit trail, once', async () => {
  const user = await userWith(2)
  const all = await ids(user)
  for (let time = 0; time < 3; time++) await Notification.mark(user, { ids: all })
  await settle(user.organisationId)
  const entries = await entriesOf(user)
  expect(entries.map(({ action, actor, detail }) => [action, actor.id, detail])).toEqual([
    ['notification.read', user.userId, '2 marked as read'],
  ])
})

test.each([3, 90, 91, 250])('of %i unread all are marked at once, and what arrives later is unread', async (count) => {
  const user = await userWith(count)
  expect(await unread(user)).toBe(count)
  await Notification.mark(user, { markAllRead: true, ids: [newId('notif')] })
  expect(await read(user)).toMatchObject({ totalCount: count, unreadCount: 0 })
  later(1)
  await happens(user.organisationId, jobFailed(user.userId))
  const { items, unreadCount } = await read(user)
  expect([unreadCount, items[0]?.read, items[1]?.read]).toEqual([1, false, true])
  expect(await read(user, { unreadOnly: true })).toMatchObject({ totalCount: 1, items: [{ id: items[0]?.id }] })
  await Notification.mark(user, { markAllRead: true })
  expect(await unread(user)).toBe(0)
})

test('one that arrives after all were marked is unread, though a slower clock makes it look older', async () => {
  const user = await userWith(5)
  later(-minute)
  await tell({ kind: 'system', organisationId: user.organisationId }, jobFailed(user.userId))
  later(minute)
  await Notification.mark(user, { markAllRead: true })
  await settle(user.organisationId)
  const { items, unreadCount } = await read(user)
  expect(unreadCount).toBe(1)
  expect(items[0]?.read).toBe(true)
})

test('marking all while more arrive loses none: whatever is unread afterwards was not there before', async () => {
  const user = await userWith(100)
  const before = new Set(await ids(user))
  const arriving = Array.from({ length: 20 }, () => happens(user.organisationId, jobFailed(user.userId)))
  const marking = Array.from({ length: 3 }, () => Notification.mark(user, { markAllRead: true }))
  await Promise.all([...arriving, ...marking])
  await settle(user.organisationId)
  const left = await read(user, { unreadOnly: true })
  expect(left.items.filter(({ id }) => before.has(id))).toEqual([])
  expect((await read(user)).totalCount).toBe(120)
  await Notification.mark(user, { markAllRead: true })
  expect(await unread(user)).toBe(0)
  expect(await Audit.verify(user, { after: 0 })).toMatchObject({ valid: true })
})

test('after 90 days a notification is gone from the list and from all counts', async () => {
  const { organisationId, operator } = await people()
  await happens(organisationId, jobFailed(operator.userId))
  later(89 * day)
  await happens(organisationId, jobFailed(operator.userId))
  expect(await read(operator)).toMatchObject({ totalCount: 2, unreadCount: 2 })
  later(1 * day + minute)
  expect(await read(operator)).toMatchObject({ totalCount: 1, unreadCount: 1, items: [{ type: 'JobFailed' }] })
})

test('a user without notifications has an empty page', async () => {
  const user = callerOf()
  expect(await read(user, { page: 3, pageSize: 10 })).toEqual({
    items: [],
    totalCount: 0,
    unreadCount: 0,
    page: 3,
    pageSize: 10,
  })
  await Notification.mark(user, { markAllRead: true })
  await tell(user, done('test.change'))
  await settle(user.organisationId)
  expect(await entriesOf(user)).toHaveLength(1)
})
