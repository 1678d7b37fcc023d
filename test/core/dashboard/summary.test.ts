import { clusterStatuses } from '@platform/contract/cluster'
import { jobStatuses } from '@platform/contract/job'
import type { Permission } from '@platform/contract/permission'
import { getNavigation, PortalSummary } from '@platform/contract/portal'
import type { Caller } from '@platform/core/caller'
import { now } from '@platform/core/clock'
import * as Cluster from '@platform/core/clusters/cluster'
import { config } from '@platform/core/config'
import { navigation } from '@platform/core/dashboard/navigation'
import { portalSummary } from '@platform/core/dashboard/summary'
import * as keys from '@platform/core/db/keys'
import { remove, replace } from '@platform/core/db/table'
import { transact } from '@platform/core/db/transact'
import { claim } from '@platform/core/jobs/claim'
import * as Job from '@platform/core/jobs/job'
import { list as listJobs } from '@platform/core/jobs/list'
import { version } from '@platform/core/lib/version'
import { list as listCatalog } from '@platform/core/modules/catalog/list'
import { iconNames } from '@platform/core/modules/icons'
import { list as listModules } from '@platform/core/modules/module'
import { markRead } from '@platform/core/notifications/notification'
import { ready } from '@platform/core/platform/health'
import { goodbye } from '@platform/core/relays/heartbeat'
import { beforeAll, expect, test } from 'vitest'
import { advanceClock } from '../../support/clock.ts'
import { bootstrapPlatform, enrolledCluster, newCaller } from '../../support/fixtures.ts'
import { countStoreCalls } from '../../support/store-calls.ts'
import { dispatchedJob, runJob } from '../support/jobs.ts'
import {
  catalogRelease,
  newModuleId,
  putCatalog,
  putHealth,
  putModule,
  releaseFor,
  storedCheck,
} from '../support/modules.ts'
import {
  commitAndDrain,
  jobFailedEffect,
  listNotifications,
  minute,
  notificationIds,
  organisationWithUsers,
} from '../support/notifications.ts'
import { drainOutbox } from '../support/outbox.ts'
import { clearUpdates, storeUpdateState } from '../support/updates.ts'

beforeAll(bootstrapPlatform)

/** The summary after the modules in the process's cache have expired. */
function freshSummary(caller: Caller): Promise<PortalSummary> {
  advanceClock(500)
  return portalSummary(caller)
}

const page = { page: 1, pageSize: 1 }

test('counts clusters and jobs like their lists', async () => {
  const caller = await newCaller()
  const [online, offline] = [await enrolledCluster(caller), await enrolledCluster(caller)]
  for (const name of ['one', 'two']) await Cluster.register(caller, { name, type: 'CloudLocal' })
  await goodbye(offline.request(), { reason: 'test' })
  const jobIds = []
  for (let count = 0; count < 5; count++) jobIds.push(await dispatchedJob(caller, online))
  const [completed = '', failed = '', cancelled = '', running = ''] = jobIds
  await runJob(online, completed)
  await runJob(online, failed, 1)
  await Job.cancel(caller, cancelled)
  await claim(online.request(), running, undefined)
  await drainOutbox(caller.organisationId)

  const { clusters, jobs } = await freshSummary(caller)
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

  const newOrganisation = await freshSummary(await newCaller(undefined, 'PlatformAdmin'))
  expect(PortalSummary.parse(newOrganisation)).toEqual(newOrganisation)
  expect(newOrganisation).toMatchObject({ clusters: { total: 0 }, jobs: { total: 0 }, unreadCount: 0 })
})

test('counts modules like their list and the catalog', async () => {
  await putCatalog({})
  const caller = await newCaller()
  const before = (await freshSummary(caller)).modules
  const [healthy, unhealthy, failed, installing] = [newModuleId(), newModuleId(), newModuleId(), newModuleId()]
  for (const id of [healthy, unhealthy]) await putModule(releaseFor(id))
  await putModule(releaseFor(failed), { state: 'Failed' })
  await putModule(releaseFor(installing), { state: 'Installing' })
  await putHealth(healthy, 'Healthy')
  await putHealth(unhealthy, 'Unhealthy', [storedCheck('x', { status: 'Unhealthy' })])
  const releases = (...entries: [string, string][]) => entries.map(([id, release]) => catalogRelease(id, release))
  await putCatalog({
    'registry.example.com/a': releases([healthy, '1.0.1'], [healthy, '1.0.0'], [failed, '2.0.0-rc.1']),
    'registry.example.com/b': releases([unhealthy, '1.0.0'], [installing, '3.0.0'], [newModuleId(), '1.0.0']),
  })
  const { modules } = await freshSummary(caller)
  const installed = (before?.installed ?? 0) + 3
  expect(modules).toEqual({ installed, unhealthy: (before?.unhealthy ?? 0) + 2, updatesAvailable: 2 })
  const { items } = await listCatalog({})
  expect(items.filter(({ updateAvailable }) => updateAvailable)).toHaveLength(2)
  expect((await listModules()).items.filter(({ health }) => health === 'Unhealthy')).toHaveLength(
    modules?.unhealthy ?? 0,
  )
  // A scan without versions.
  await transact([replace(keys.catalogScan(), { scannedAtMs: now(), problems: [] })])
  expect((await freshSummary(caller)).modules?.updatesAvailable).toBe(0)
  await putCatalog({})
  expect((await freshSummary(caller)).modules?.updatesAvailable).toBe(0)
})

test('has the same health as /health/ready', async () => {
  const caller = await newCaller()
  const id = newModuleId()
  await putModule(releaseFor(id))
  for (const tag of ['informational', 'degradable', 'critical'] as const) {
    await putHealth(id, 'Unhealthy', [storedCheck('x', { status: 'Unhealthy', tags: [tag] })])
    const { health } = await freshSummary(caller)
    expect(health.aggregate).toBe((await ready()).body.aggregate)
    if (tag === 'critical') expect(health.aggregate).toBe('Unhealthy')
  }
  await transact([remove(keys.module(id)), remove(keys.moduleHealth(id))])
})

test('the navigation tag changes with the navigation of the caller only', async () => {
  const [viewer, colleague] = [await newCaller(undefined, 'Viewer'), await newCaller(undefined, 'Viewer')]
  const tagOf = async (caller: Caller) => (await freshSummary(caller)).navigationTag
  const tag = await tagOf(viewer)
  expect(await tagOf(colleague)).toBe(tag)
  expect(await tagOf(await newCaller())).not.toBe(tag)
  const id = newModuleId()
  await putModule(releaseFor(id), { state: 'Installing' })
  expect(await tagOf(viewer)).toBe(tag)
  const slot = { slotId: 'nav.primary', id, label: 'New', icon: 'hand', route: `/modules/${id}`, order: 100 } as const
  await putModule(releaseFor(id, { spec: { navSlots: [slot] } }))
  expect((await navigation(viewer)).items.some((entry) => entry.id === id)).toBe(true)
  expect(await tagOf(viewer)).not.toBe(tag)
  await transact([remove(keys.module(id))])
  expect(await tagOf(viewer)).toBe(tag)
})

test('counts unread notifications like their list, at once after any change', async () => {
  const { organisationId, operator, admin } = await organisationWithUsers()
  const failJobs = (count: number) =>
    commitAndDrain(organisationId, ...Array.from({ length: count }, () => jobFailedEffect(operator.userId)))
  const expectUnread = async (count: number, caller = operator) => {
    expect((await freshSummary(caller)).unreadCount).toBe(count)
    expect((await listNotifications(caller)).unreadCount).toBe(count)
  }
  await expectUnread(0)
  await failJobs(3)
  await expectUnread(3)
  await markRead(operator, { ids: (await notificationIds(operator)).slice(0, 1) })
  await expectUnread(2)
  await failJobs(1)
  await expectUnread(3)
  await markRead(operator, { markAllRead: true })
  await expectUnread(0)
  await expectUnread(0, admin)
})

test('counts a late notification that sorts among older ones within a minute', async () => {
  const { organisationId, operator } = await organisationWithUsers()
  advanceClock(minute)
  await commitAndDrain(organisationId, ...Array.from({ length: 3 }, () => jobFailedEffect(operator.userId)))
  expect((await freshSummary(operator)).unreadCount).toBe(3)
  advanceClock(-minute)
  await commitAndDrain(organisationId, jobFailedEffect(operator.userId))
  advanceClock(2 * minute)
  expect((await freshSummary(operator)).unreadCount).toBe(4)
})

const storeUpdateCheck = (source: string, latestVersion: string) => {
  const latest = JSON.stringify({ version: latestVersion })
  const check = { source, latest, refused: '[]', checkedAtMs: now(), told: [], revision: 1 }
  return transact([replace(keys.updateCheck(), check)])
}

test('returns the result of the last update check of the configured source', async () => {
  await clearUpdates()
  const caller = await newCaller(undefined, 'PlatformAdmin')
  const updateNumbers = async () => (await freshSummary(caller)).update
  const noUpdate = { currentVersion: version, latestVersion: version, updateAvailable: false }
  const checkedAt = expect.any(String)
  expect(await updateNumbers()).toEqual(noUpdate)
  await storeUpdateCheck('registry.example.com/others', '99.0.0')
  expect(await updateNumbers()).toEqual(noUpdate)
  await storeUpdateCheck(config.PLAT_RELEASE_SOURCE, '99.0.0')
  const update = { currentVersion: version, latestVersion: '99.0.0', updateAvailable: true, checkedAt }
  expect(await updateNumbers()).toEqual(update)
  await storeUpdateCheck(config.PLAT_RELEASE_SOURCE, '0.0.1')
  await storeUpdateState({ version }, { version: '0.0.9' })
  expect(await updateNumbers()).toEqual({ ...noUpdate, checkedAt, previousVersion: '0.0.9' })
  await clearUpdates()
})

test.each<[Permission | undefined, string[]]>([
  [undefined, []],
  ['clusters:read', ['clusters']],
  ['jobs:read', ['jobs']],
  ['modules:read', ['modules']],
  ['platform:admin', ['update']],
])('with the permission %s only returns the fields %j and common ones', async (permission, fields) => {
  const permissions = new Set(permission && [permission])
  const summary = await freshSummary({ ...(await newCaller()), permissions })
  expect(Object.keys(summary).toSorted()).toEqual(['health', 'navigationTag', 'unreadCount', ...fields].toSorted())
})

test('takes three calls, two within half a second of another summary, and four after a notification', async () => {
  const { organisationId, operator } = await organisationWithUsers()
  await freshSummary(operator)
  expect(await countStoreCalls(() => freshSummary(operator))).toBe(3)
  expect(await countStoreCalls(() => portalSummary(operator))).toBe(2)
  expect(await countStoreCalls(() => portalSummary({ ...operator, permissions: new Set() }))).toBe(1)
  await commitAndDrain(organisationId, jobFailedEffect(operator.userId))
  expect(await countStoreCalls(() => freshSummary(operator))).toBe(4)
})

const navSlot = (id: string, more: object = {}) => ({
  slotId: 'nav.primary' as const,
  id,
  label: 'Hello World',
  icon: 'hand',
  route: `/modules/${id}`,
  order: 100,
  ...more,
})

const entriesFor = async (role: string) => (await navigation(await newCaller(undefined, role))).items
const builtInsFor = async (role: string) => (await entriesFor(role)).filter(({ source }) => source === 'platform')
const builtInIds = async (role: string) => (await builtInsFor(role)).map(({ id }) => id)

const viewerIds = ['dashboard', 'account', 'clusters', 'jobs', 'modules', 'notifications', 'health']
const adminIds = [...viewerIds, 'users', 'webhooks', 'audit']
test.each([
  ['Viewer', viewerIds],
  ['Auditor', [...viewerIds, 'audit']],
  ['OrgAdmin', adminIds],
  ['PlatformAdmin', [...adminIds, 'identity', 'organisations', 'updates']],
])('%s has the permitted built-in entries', async (role, ids) => {
  expect((await builtInIds(role)).toSorted()).toEqual(ids.toSorted())
})

test('built-in entries have an order from 0 to 50, existing icons and unique routes', async () => {
  expect(await builtInIds('Unknown')).toEqual(['account', 'dashboard', 'notifications', 'health'])
  const entries = await builtInsFor('PlatformAdmin')
  for (const { order, icon } of entries) {
    expect(order).toBeGreaterThanOrEqual(0)
    expect(order).toBeLessThanOrEqual(50)
    expect(iconNames.has(icon), icon).toBe(true)
  }
  expect(new Set(entries.map(({ route }) => route)).size).toBe(entries.length)
})

test('includes entries of running and upgrading modules only', async () => {
  const states = ['Running', 'Upgrading', 'Installing', 'Failed', 'Uninstalling'] as const
  const ids = states.map(() => newModuleId())
  for (const [index, state] of states.entries()) {
    const id = ids[index]!
    await putModule(releaseFor(id, { spec: { navSlots: [navSlot(id)] } }), { state })
  }
  const entries = (await entriesFor('Viewer')).filter(({ id }) => ids.includes(id))
  expect(entries.map(({ id }) => id).toSorted()).toEqual(ids.slice(0, 2).toSorted())
  expect(entries).toContainEqual({ ...navSlot(ids[0]!), source: `module:${ids[0]}` })
})

test('sorts entries by order and id', async () => {
  for (const id of [newModuleId(), newModuleId()].toSorted().toReversed()) {
    const navSlots = [navSlot(`${id}-z`, { order: 3 }), navSlot(`${id}-y`, { order: 3, slotId: 'nav.settings' })]
    await putModule(releaseFor(id, { spec: { navSlots } }))
  }
  const items = await entriesFor('PlatformAdmin')
  const sortKeys = items.map(({ order, id }) => `${String(order).padStart(5, '0')} ${id}`)
  expect(sortKeys).toEqual(sortKeys.toSorted())
  expect(getNavigation.responses[200].content['application/json'].schema.parse({ items })).toEqual({ items })
})
