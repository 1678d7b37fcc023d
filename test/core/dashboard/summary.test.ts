import { beforeAll, expect, test } from 'vitest'
import { clusterStatuses } from '@platform/contract/cluster'
import { jobStatuses } from '@platform/contract/job'
import { type Permission } from '@platform/contract/permission'
import { PortalSummary } from '@platform/contract/portal'
import { type Caller } from '@platform/core/caller'
import { list as listCatalog } from '@platform/core/modules/catalog/list'
import { now } from '@platform/core/clock'
import * as Cluster from '@platform/core/clusters/cluster'
import { config } from '@platform/core/config'
import * as keys from '@platform/core/db/keys'
import { remove, replace } from '@platform/core/db/table'
import { transact } from '@platform/core/db/transact'
import { ready } from '@platform/core/platform/health'
import * as Job from '@platform/core/jobs/job'
import { list as listJobs } from '@platform/core/jobs/list'
import { claim } from '@platform/core/jobs/claim'
import { list as listModules } from '@platform/core/modules/module'
import { navigation } from '@platform/core/dashboard/navigation'
import * as Notification from '@platform/core/notifications/notification'
import { portalSummary } from '@platform/core/dashboard/summary'
import { goodbye } from '@platform/core/relays/heartbeat'
import { version } from '@platform/core/lib/version'
import { countStoreCalls } from '../../support/store-calls.ts'
import { newCaller, enrolledCluster, bootstrapPlatform } from '../../support/fixtures.ts'
import { drainOutbox } from '../support/outbox.ts'
import { runJob, dispatchedJob } from '../support/jobs.ts'
import {
  storedCheck,
  catalogRelease,
  newModuleId,
  putCatalog,
  putHealth,
  putModule,
  releaseFor,
} from '../support/modules.ts'
import {
  commitAndDrain,
  notificationIds,
  jobFailedEffect,
  advanceClock,
  minute,
  organisationWithUsers,
  listNotifications,
} from '../support/notifications.ts'
import { clearUpdates, storeUpdateState } from '../support/updates.ts'

beforeAll(bootstrapPlatform)

/** What the caller is told once nothing is believed any more that an earlier test has left. */
function summary(caller: Caller): Promise<PortalSummary> {
  advanceClock(500)
  return portalSummary(caller)
}
const page = { page: 1, pageSize: 1 }

test('clusters and jobs are counted as the lists count them', async () => {
  const caller = await newCaller()
  const world = await enrolledCluster(caller)
  const gone = await enrolledCluster(caller)
  for (const name of ['one', 'two']) await Cluster.register(caller, { name, type: 'CloudLocal' })
  await goodbye(gone.request(), { reason: 'test' })
  const waiting = []
  for (let count = 0; count < 5; count++) waiting.push(await dispatchedJob(caller, world))
  const [completed = '', failed = '', cancelled = '', running = ''] = waiting
  await runJob(world, completed)
  await runJob(world, failed, 1)
  await Job.cancel(caller, cancelled)
  await claim(world.request(), running, undefined)
  await drainOutbox(caller.organisationId)

  const { clusters, jobs } = await summary(caller)
  expect(clusters).toEqual({ total: 4, byStatus: { Healthy: 1, Degraded: 0, Pending: 2, Offline: 1 } })
  expect(jobs).toEqual({ total: 5, byStatus: { Queued: 1, Running: 1, Completed: 1, Failed: 1, Cancelled: 1 } })
  expect(clusters?.total).toBe((await Cluster.list(caller, page)).totalCount)
  for (const status of clusterStatuses) {
    expect(clusters?.byStatus[status]).toBe((await Cluster.list(caller, { ...page, status })).totalCount)
  }
  expect(jobs?.total).toBe((await listJobs(caller, page)).totalCount)
  for (const status of jobStatuses) {
    expect(jobs?.byStatus[status]).toBe((await listJobs(caller, { ...page, status })).totalCount)
  }
})

test('of a fresh organisation everything is zero, and fits the contract', async () => {
  const fresh = await summary(await newCaller(undefined, 'PlatformAdmin'))
  expect(PortalSummary.parse(fresh)).toEqual(fresh)
  expect(fresh).toMatchObject({ clusters: { total: 0 }, jobs: { total: 0 }, unreadCount: 0 })
})

test('modules are counted as the list and the catalog tell', async () => {
  await putCatalog({})
  const caller = await newCaller()
  const before = (await summary(caller)).modules
  const [good, bad, failed, first] = [newModuleId(), newModuleId(), newModuleId(), newModuleId()]
  for (const id of [good, bad]) await putModule(releaseFor(id))
  await putModule(releaseFor(failed), { state: 'Failed' })
  await putModule(releaseFor(first), { state: 'Installing' })
  await putHealth(good, 'Healthy')
  await putHealth(bad, 'Unhealthy', [storedCheck('x', { status: 'Unhealthy' })])
  await putCatalog({
    'registry.example.com/a': [
      catalogRelease(good, '1.0.1'),
      catalogRelease(good, '1.0.0'),
      catalogRelease(failed, '2.0.0-rc.1'),
    ],
    'registry.example.com/b': [
      catalogRelease(bad, '1.0.0'),
      catalogRelease(first, '3.0.0'),
      catalogRelease(newModuleId(), '1.0.0'),
    ],
  })
  const { modules } = await summary(caller)
  expect(modules).toEqual({
    installed: (before?.installed ?? 0) + 3,
    unhealthy: (before?.unhealthy ?? 0) + 2,
    updatesAvailable: 2,
  })
  const { items } = await listCatalog({})
  expect(items.filter(({ updateAvailable }) => updateAvailable)).toHaveLength(modules?.updatesAvailable ?? -1)
  const unhealthy = (await listModules()).items.filter(({ health }) => health === 'Unhealthy')
  expect(modules?.unhealthy).toBe(unhealthy.length)
  await putCatalog({})
  expect((await summary(caller)).modules?.updatesAvailable).toBe(0)
})

test('a scan of an earlier release, which told no versions, tells of no updates', async () => {
  const id = newModuleId()
  await putModule(releaseFor(id))
  await putCatalog({ 'registry.example.com/a': [catalogRelease(id, '2.0.0')] })
  await transact([replace(keys.catalogScan(), { scannedAtMs: now(), problems: [] })])
  expect((await summary(await newCaller())).modules?.updatesAvailable).toBe(0)
})

test('health is what /health/ready says', async () => {
  const caller = await newCaller()
  const id = newModuleId()
  await putModule(releaseFor(id))
  for (const tags of [['informational'], ['degradable'], ['critical']] as const) {
    await putHealth(id, 'Unhealthy', [storedCheck('x', { status: 'Unhealthy', tags: [...tags] })])
    const { health } = await summary(caller)
    expect(health.aggregate).toBe((await ready()).body.aggregate)
    if (tags[0] === 'critical') expect(health.aggregate).toBe('Unhealthy')
  }
  await transact([remove(keys.module(id)), remove(keys.moduleHealth(id))])
})

test('the tag changes with the caller’s navigation, within half a second, and with nothing else', async () => {
  const [viewer, colleague] = [await newCaller(undefined, 'Viewer'), await newCaller(undefined, 'Viewer')]
  const [{ navigationTag: tag }, other] = [await summary(viewer), await summary(colleague)]
  expect(other.navigationTag).toBe(tag)
  expect((await summary(await newCaller())).navigationTag).not.toBe(tag)
  const id = newModuleId()
  await putModule(releaseFor(id), { state: 'Installing' })
  expect((await summary(viewer)).navigationTag).toBe(tag)
  const slot = { slotId: 'nav.primary', id, label: 'New', icon: 'hand', route: `/modules/${id}`, order: 100 } as const
  await putModule(releaseFor(id, { spec: { navSlots: [slot] } }))
  expect((await navigation(viewer)).items.some((entry) => entry.id === id)).toBe(true)
  expect((await summary(viewer)).navigationTag).not.toBe(tag)
  await transact([remove(keys.module(id))])
  expect((await summary(viewer)).navigationTag).toBe(tag)
})

test('the unread are counted as the list counts them, as soon as they come and are marked', async () => {
  const { organisationId, operator, admin } = await organisationWithUsers()
  const both = async () => {
    const counts = [(await summary(operator)).unreadCount, (await listNotifications(operator)).unreadCount]
    expect(counts[0]).toBe(counts[1])
    return counts[0]
  }
  expect(await both()).toBe(0)
  await commitAndDrain(
    organisationId,
    jobFailedEffect(operator.userId),
    jobFailedEffect(operator.userId),
    jobFailedEffect(operator.userId),
  )
  expect(await both()).toBe(3)
  const [first = ''] = await notificationIds(operator)
  await Notification.markRead(operator, { ids: [first] })
  expect(await both()).toBe(2)
  await commitAndDrain(organisationId, jobFailedEffect(operator.userId))
  expect(await both()).toBe(3)
  await Notification.markRead(operator, { markAllRead: true })
  expect(await both()).toBe(0)
  expect((await summary(admin)).unreadCount).toBe((await listNotifications(admin)).unreadCount)
})

test('a notification that sorts among older ones is counted within a minute', async () => {
  const { organisationId, operator } = await organisationWithUsers()
  advanceClock(minute)
  await commitAndDrain(organisationId, ...Array.from({ length: 3 }, () => jobFailedEffect(operator.userId)))
  expect((await summary(operator)).unreadCount).toBe(3)
  advanceClock(-minute)
  await commitAndDrain(organisationId, jobFailedEffect(operator.userId))
  advanceClock(2 * minute)
  expect((await summary(operator)).unreadCount).toBe(4)
})

const lookedAt = (source: string, latest?: object) =>
  transact([
    replace(keys.updateCheck(), {
      source,
      ...(latest && { latest: JSON.stringify(latest) }),
      refused: '[]',
      checkedAtMs: now(),
      told: [],
      revision: 1,
    }),
  ])

test('an update is told as the last look has found it, without a look', async () => {
  await clearUpdates()
  const caller = await newCaller(undefined, 'PlatformAdmin')
  const none = { currentVersion: version, latestVersion: version, updateAvailable: false }
  expect((await summary(caller)).update).toEqual(none)
  await lookedAt('registry.example.com/others', { version: '99.0.0' })
  expect((await summary(caller)).update).toEqual(none)
  await lookedAt(config.PLAT_RELEASE_SOURCE, { version: '99.0.0' })
  expect((await summary(caller)).update).toEqual({
    currentVersion: version,
    latestVersion: '99.0.0',
    updateAvailable: true,
    checkedAt: expect.any(String),
  })
  await lookedAt(config.PLAT_RELEASE_SOURCE, { version: '0.0.1' })
  await storeUpdateState({ version }, { version: '0.0.9' })
  expect((await summary(caller)).update).toEqual({
    ...none,
    checkedAt: expect.any(String),
    previousVersion: '0.0.9',
  })
  await clearUpdates()
})

test('what a caller may not read is absent', async () => {
  const caller = await newCaller()
  const membersOf = async (...permissions: Permission[]) =>
    Object.keys(await summary({ ...caller, permissions: new Set(permissions) })).toSorted()
  const always = ['health', 'navigationTag', 'unreadCount']
  expect(await membersOf()).toEqual(always)
  expect(await membersOf('clusters:read')).toEqual(['clusters', ...always])
  expect(await membersOf('jobs:read')).toEqual(['health', 'jobs', 'navigationTag', 'unreadCount'])
  expect(await membersOf('modules:read')).toEqual(['health', 'modules', 'navigationTag', 'unreadCount'])
  expect(await membersOf('platform:admin')).toEqual([...always, 'update'])
})

test('counters of another organisation are not read', async () => {
  const [caller, other] = [await newCaller(), await newCaller()]
  await Cluster.register(caller, { name: 'mine', type: 'Hypervisor' })
  expect((await summary(other)).clusters?.total).toBe(0)
})

test('a poll is three calls of the store, two within half a second of another one, and one more after news', async () => {
  const { organisationId, operator } = await organisationWithUsers()
  await summary(operator)
  expect(await countStoreCalls(() => summary(operator))).toBe(3)
  expect(await countStoreCalls(() => portalSummary(operator))).toBe(2)
  expect(await countStoreCalls(() => portalSummary({ ...operator, permissions: new Set() }))).toBe(1)
  await commitAndDrain(organisationId, jobFailedEffect(operator.userId))
  expect(await countStoreCalls(() => summary(operator))).toBe(4)
})
