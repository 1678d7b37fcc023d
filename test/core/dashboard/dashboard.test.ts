import { clusterStatuses } from '@platform/contract/cluster'
import { History, maxHistoryPoints } from '@platform/contract/history'
import { jobStatuses } from '@platform/contract/job'
import type { Permission } from '@platform/contract/permission'
import { getNavigation, PortalSummary } from '@platform/contract/portal'
import { sweep } from '@platform/core/background/sweep'
import type { Caller } from '@platform/core/caller'
import { now } from '@platform/core/clock'
import * as Cluster from '@platform/core/clusters/cluster'
import { config } from '@platform/core/config'
import { bucketAt, bucketMs, historyProjection } from '@platform/core/dashboard/history-projection'
import { writesWithCounts } from '@platform/core/outbox/run-projections'
import { readHistory } from '@platform/core/dashboard/history'
import { navigation } from '@platform/core/dashboard/navigation'
import { readPortalSummary } from '@platform/core/dashboard/summary'
import * as keys from '@platform/core/db/keys'
import { batchPut, get, patch, query, remove, replace } from '@platform/core/db/table'
import { transact } from '@platform/core/db/transact'
import { claim } from '@platform/core/jobs/claim'
import { recordStartsAndEnds } from '@platform/core/jobs/recording'
import * as Job from '@platform/core/jobs/job'
import { list as listJobs } from '@platform/core/jobs/list'
import { chunk } from '@platform/core/lib/async'
import { version } from '@platform/core/lib/version'
import { list as listCatalog } from '@platform/core/modules/catalog/list'
import { iconNames } from '@platform/core/modules/icons'
import { list as listModules } from '@platform/core/modules/module'
import { markRead } from '@platform/core/notifications/notification'
import { ready } from '@platform/core/platform/health'
import { goodbye } from '@platform/core/relays/heartbeat'
import { beforeAll, expect, test } from 'vitest'
import { advanceClock } from '../../support/clock.ts'
import { bootstrapPlatform, callerWithCluster, enrolledCluster, newCaller } from '../../support/fixtures.ts'
import { countStoreCalls } from '../../support/store-calls.ts'
import { runBefore } from '../support/interleaving.ts'
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
  minuteMs,
  readNotificationIds,
  organisationWithUsers,
} from '../support/notifications.ts'
import { countsOf, drainOutbox, readPendingRecords } from '../support/outbox.ts'
import { clearUpdates, storeUpdateState } from '../support/updates.ts'

beforeAll(bootstrapPlatform)

/** Returns the summary after the cached modules have expired. */
function freshSummary(caller: Caller): Promise<PortalSummary> {
  advanceClock(500)
  return readPortalSummary(caller)
}

const page = { page: 1, pageSize: 1 }

test('counts clusters and jobs like their lists', async () => {
  const caller = await newCaller()
  const [onlineCluster, offlineCluster] = [await enrolledCluster(caller), await enrolledCluster(caller)]
  for (const name of ['one', 'two']) await Cluster.register(caller, { name, type: 'CloudLocal' })
  await goodbye(offlineCluster.request(), { reason: 'test' })
  const jobIds = []
  for (let count = 0; count < 5; count++) jobIds.push(await dispatchedJob(caller, onlineCluster))
  const [completed = '', failed = '', cancelled = '', running = ''] = jobIds
  await runJob(onlineCluster, completed)
  await runJob(onlineCluster, failed, 1)
  await Job.cancel(caller, cancelled)
  await claim(onlineCluster.request(), running, undefined)
  await recordStartsAndEnds(caller.organisationId, [running])
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
  const counts = (await freshSummary(caller)).modules
  const [healthyId, unhealthyId, failedId, installingId] = [newModuleId(), newModuleId(), newModuleId(), newModuleId()]
  for (const id of [healthyId, unhealthyId]) await putModule(releaseFor(id))
  await putModule(releaseFor(failedId), { state: 'Failed' })
  await putModule(releaseFor(installingId), { state: 'Installing' })
  await putHealth(healthyId, 'Healthy')
  await putHealth(unhealthyId, 'Unhealthy', [storedCheck('x', { status: 'Unhealthy' })])
  const releases = (...entries: [string, string][]) => entries.map(([id, release]) => catalogRelease(id, release))
  await putCatalog({
    'registry.example.com/a': releases([healthyId, '1.0.1'], [healthyId, '1.0.0'], [failedId, '2.0.0-rc.1']),
    'registry.example.com/b': releases([unhealthyId, '1.0.0'], [installingId, '3.0.0'], [newModuleId(), '1.0.0']),
  })
  const { modules } = await freshSummary(caller)
  const installedCount = (counts?.installed ?? 0) + 3
  expect(modules).toEqual({ installed: installedCount, unhealthy: (counts?.unhealthy ?? 0) + 2, updatesAvailable: 2 })
  const { items } = await listCatalog({})
  expect(items.filter(({ updateAvailable }) => updateAvailable)).toHaveLength(2)
  expect((await listModules()).items.filter(({ health }) => health === 'Unhealthy')).toHaveLength(
    modules?.unhealthy ?? 0,
  )
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
  await markRead(operator, { ids: (await readNotificationIds(operator)).slice(0, 1) })
  await expectUnread(2)
  await failJobs(1)
  await expectUnread(3)
  await markRead(operator, { markAllRead: true })
  await expectUnread(0)
  await expectUnread(0, admin)
})

test('counts a late notification that sorts among older ones within a minute', async () => {
  const { organisationId, operator } = await organisationWithUsers()
  advanceClock(minuteMs)
  await commitAndDrain(organisationId, ...Array.from({ length: 3 }, () => jobFailedEffect(operator.userId)))
  expect((await freshSummary(operator)).unreadCount).toBe(3)
  advanceClock(-minuteMs)
  await commitAndDrain(organisationId, jobFailedEffect(operator.userId))
  advanceClock(2 * minuteMs)
  expect((await freshSummary(operator)).unreadCount).toBe(4)
})

const storeUpdateCheck = (source: string, latestVersion: string) => {
  const latestRelease = JSON.stringify({ version: latestVersion, releaseNotesUrl: 'https://example.com/notes' })
  const check = { source, latest: latestRelease, refused: '[]', checkedAtMs: now(), announced: [], revision: 1 }
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

const navSlot = (id: string, fields: object = {}) => ({
  slotId: 'nav.primary' as const,
  id,
  label: 'Hello World',
  icon: 'hand',
  route: `/modules/${id}`,
  order: 100,
  ...fields,
})

const entriesFor = async (role: string) => (await navigation(await newCaller(undefined, role))).items
const builtInsFor = async (role: string) => (await entriesFor(role)).filter(({ source }) => source === 'platform')
const readBuiltInIds = async (role: string) => (await builtInsFor(role)).map(({ id }) => id)

const viewerIds = ['dashboard', 'account', 'clusters', 'nodes', 'jobs', 'modules', 'notifications', 'health']
const adminIds = [...viewerIds, 'users', 'webhooks', 'audit']
test.each([
  ['Viewer', viewerIds],
  ['Auditor', [...viewerIds, 'audit']],
  ['OrgAdmin', adminIds],
  ['PlatformAdmin', [...adminIds, 'identity', 'organisations', 'updates']],
])('%s has the permitted built-in entries', async (role, ids) => {
  expect((await readBuiltInIds(role)).toSorted()).toEqual(ids.toSorted())
})

test('built-in entries have an order from 0 to 50, existing icons and unique routes', async () => {
  expect(await readBuiltInIds('Unknown')).toEqual(['account', 'dashboard', 'notifications', 'health'])
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

const hourMs = 3_600_000
const noClusters = { Healthy: 0, Degraded: 0, Pending: 0, Offline: 0 }
const noJobs = { submitted: 0, completed: 0, failed: 0, cancelled: 0 }

const advanceBuckets = (count = 1): void => advanceClock(bucketAt(now()) + count * bucketMs + bucketMs / 2 - now())

const readPoints = async (caller: Caller, hours = 24) => (await readHistory(caller, hours)).points
const readClusterCounts = async (caller: Caller, hours?: number) =>
  (await readPoints(caller, hours)).map(({ clusters }) => clusters?.byStatus)
const readJobCounts = async (caller: Caller, hours?: number) =>
  (await readPoints(caller, hours)).map(({ jobs }) => jobs)
const register = (caller: Caller, name: string) => Cluster.register(caller, { name, type: 'Hypervisor' })
const project = async (organisationId: string) =>
  historyProjection.beforeCommit?.(organisationId, await readPendingRecords(organisationId))

async function callerWithEmptyOutbox() {
  const { caller, enrolled } = await callerWithCluster()
  await drainOutbox(caller.organisationId)
  advanceBuckets()
  return { caller, enrolled, organisationId: caller.organisationId }
}

test.each([
  [1, 15, 4],
  [24, 15, 96],
  [50, 15, 200],
  [51, 30, 102],
  [168, 60, 168],
  [201, 120, 101],
  [720, 240, 180],
])('a range of %i hours has intervals of %i minutes, has %i points and ends now', async (hours, stepMinutes, count) => {
  const history = await readHistory(await newCaller(), hours)
  expect(History.parse(history)).toEqual(history)
  expect([history.stepMinutes, history.points.length]).toEqual([stepMinutes, count])
  expect(count).toBeLessThanOrEqual(maxHistoryPoints)
  const times = history.points.map(({ at }) => Date.parse(at))
  for (const [index, at] of times.entries()) expect(at - (times[0] ?? 0)).toBe(index * stepMinutes * 60_000)
  const lastTime = times.at(-1) ?? 0
  expect(lastTime).toBeLessThanOrEqual(now())
  expect(lastTime + stepMinutes * 60_000).toBeGreaterThan(now())
})

test('each interval has the cluster counts at its end, and the last one the current counts', async () => {
  const caller = await newCaller()
  advanceBuckets()
  await register(caller, 'one')
  const cluster = await enrolledCluster(caller)
  await drainOutbox(caller.organisationId)
  advanceBuckets(3)
  await goodbye(cluster.request(), { reason: 'test' })
  await drainOutbox(caller.organisationId)
  advanceBuckets(2)
  await register(caller, 'three')
  const countsBefore = { ...noClusters, Pending: 1, Healthy: 1 }
  const finalCounts = { ...noClusters, Pending: 1, Offline: 1 }
  const expected = [
    undefined,
    undefined,
    countsBefore,
    countsBefore,
    countsBefore,
    finalCounts,
    finalCounts,
    { ...finalCounts, Pending: 2 },
  ]
  expect(await readClusterCounts(caller, 2)).toEqual(expected)
})

test('a snapshot stays valid until the next one and expires only after it', async () => {
  const caller = await newCaller()
  const { organisationId } = caller
  advanceBuckets()
  const firstKey = keys.clusterHistory(organisationId, bucketAt(now()))
  await register(caller, 'one')
  await drainOutbox(organisationId)
  expect((await get(firstKey))?.['ttl']).toBeUndefined()
  advanceClock(60 * 24 * hourMs)
  expect(new Set((await readClusterCounts(caller, 720)).map((counts) => counts?.Pending))).toEqual(new Set([1]))
  const secondKey = keys.clusterHistory(organisationId, bucketAt(now()))
  await register(await newCaller(organisationId), 'two')
  await drainOutbox(organisationId)
  expect(Number((await get(firstKey))?.['ttl'])).toBeGreaterThan(now() / 1000 + 30 * 24 * 3600)
  expect((await get(secondKey))?.['ttl']).toBeUndefined()
})

test('a late snapshot of older counts does not replace a newer one', async () => {
  const caller = await newCaller()
  const { organisationId } = caller
  advanceBuckets()
  await register(caller, 'one')
  // Another worker projects between the read and the write of the first worker.
  runBefore(/^Update/, async () => {
    await register(caller, 'two')
    await project(organisationId)
  })
  await project(organisationId)
  const snapshot = await get(keys.clusterHistory(organisationId, bucketAt(now())))
  expect(snapshot).toMatchObject({ Pending: 2 })
})

test('repeated and reordered projections write the same snapshot', async () => {
  const caller = await newCaller()
  const { organisationId } = caller
  advanceBuckets()
  for (const name of ['one', 'two', 'three']) await register(caller, name)
  const records = await readPendingRecords(organisationId)
  for (const record of [...records, ...records.toReversed()])
    await historyProjection.beforeCommit?.(organisationId, [record])
  const { items } = await query({ pk: keys.clusterHistory(organisationId, 0).pk })
  expect(items.map((item) => item['Pending'])).toEqual([3])
})

test('counts jobs once, in the intervals of their submission and end', async () => {
  const { caller, enrolled } = await callerWithEmptyOutbox()
  const jobIds = []
  for (let count = 0; count < 4; count++) jobIds.push(await dispatchedJob(caller, enrolled))
  advanceBuckets(2)
  const [completed = '', failed = '', cancelled = ''] = jobIds
  await runJob(enrolled, completed)
  await runJob(enrolled, failed, 1)
  await Job.cancel(caller, cancelled)
  advanceBuckets()
  // The history counts the time of a record, not the time of its projection.
  await drainOutbox(caller.organisationId)
  await drainOutbox(caller.organisationId)
  const endedCounts = { submitted: 0, completed: 1, failed: 1, cancelled: 1 }
  expect(await readJobCounts(caller, 1)).toEqual([{ ...noJobs, submitted: 4 }, noJobs, endedCounts, noJobs])
})

test('counts the jobs of the range before and the clusters at its end', async () => {
  const { caller, enrolled } = await callerWithEmptyOutbox()
  const readPrevious = async () => (await readHistory(caller, 1)).previous
  expect(await readPrevious()).toMatchObject({ jobs: noJobs })
  await runJob(enrolled, await dispatchedJob(caller, enrolled))
  await drainOutbox(caller.organisationId)
  advanceBuckets(3)
  expect(await readPrevious()).toMatchObject({ jobs: noJobs })
  advanceBuckets()
  const pointBefore = { jobs: { ...noJobs, submitted: 1, completed: 1 }, clusters: { byStatus: { Healthy: 1 } } }
  expect(await readPrevious()).toMatchObject(pointBefore)
  advanceBuckets(4)
  expect(await readPrevious()).toMatchObject({ jobs: noJobs })
})

test('counts purged jobs', async () => {
  const { caller, enrolled, organisationId } = await callerWithEmptyOutbox()
  await runJob(enrolled, await dispatchedJob(caller, enrolled))
  await drainOutbox(organisationId)
  await Cluster.remove(caller, enrolled.cluster.id)
  advanceBuckets()
  await sweep()
  await drainOutbox(organisationId)
  expect(await get(keys.organisationCounts(organisationId))).toMatchObject({ Completed: 0 })
  expect((await readJobCounts(caller, 1)).slice(-2)).toEqual([{ ...noJobs, submitted: 1, completed: 1 }, noJobs])
})

test('a failed projection transaction counts no job', async () => {
  const { caller, enrolled, organisationId } = await callerWithEmptyOutbox()
  await dispatchedJob(caller, enrolled)
  const outbox = { organisationId, counts: await countsOf(organisationId), projectedIds: [] }
  const writes = writesWithCounts(outbox, await readPendingRecords(organisationId), [historyProjection])
  expect(writes).toHaveLength(1)
  const failingWrite = patch(keys.outbox(organisationId, 'missing'), { set: { x: 1 } })
  expect(await transact([...writes, failingWrite])).toBeDefined()
  await drainOutbox(organisationId)
  expect((await readJobCounts(caller, 1)).at(-1)).toEqual({ ...noJobs, submitted: 1 })
})

test('a longer interval sums the jobs of its buckets and uses their last snapshot', async () => {
  const { caller, enrolled } = await callerWithCluster()
  advanceClock(Math.ceil(now() / (4 * hourMs)) * 4 * hourMs - now() + bucketMs / 2)
  for (let count = 0; count < 3; count++) {
    await dispatchedJob(caller, enrolled)
    await register(caller, `cluster ${count}`)
    await drainOutbox(caller.organisationId)
    advanceBuckets()
  }
  advanceClock(4 * hourMs)
  const lastPoints = (await readPoints(caller, 720)).slice(-2)
  expect(lastPoints.map(({ jobs }) => jobs?.submitted)).toEqual([3, 0])
  expect(lastPoints.map(({ clusters }) => clusters?.byStatus.Pending)).toEqual([3, 3])
})

test('reads a full longest range in four calls', async () => {
  const caller = await newCaller()
  const { organisationId } = caller
  const buckets = Array.from({ length: 5760 }, (_, index) => bucketAt(now()) - index * bucketMs)
  const million = 1_000_000
  const jobs = { submitted: million, completed: million, failed: million, cancelled: million, ttl: 2_000_000_000 }
  const clusters = { Healthy: 100_000, Degraded: 100_000, Pending: 100_000, Offline: 100_000, revision: 100 * million }
  for (const group of chunk(buckets, 250)) {
    await batchPut(group.map((bucket) => ({ ...keys.jobHistory(organisationId, bucket), ...jobs })))
    await batchPut(group.map((bucket) => ({ ...keys.clusterHistory(organisationId, bucket), ...clusters })))
  }
  expect(await countStoreCalls(() => readHistory(caller, 720))).toBe(4)
  const { points: intervals, previous } = await readHistory(caller, 720)
  expect(intervals[90]?.jobs?.completed).toBe(16 * million)
  expect(previous.jobs?.completed).toBeGreaterThan(2860 * million)
  expect(previous.clusters?.byStatus.Offline).toBe(100_000)
})
