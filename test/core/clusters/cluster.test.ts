import { siteLimit } from '@platform/contract/site'
import * as Audit from '@platform/core/audit/audit'
import { sweep } from '@platform/core/background/sweep'
import type { Caller } from '@platform/core/caller'
import * as Cluster from '@platform/core/clusters/cluster'
import type { ClusterQuery } from '@platform/core/clusters/list'
import * as Site from '@platform/core/clusters/site'
import {
  clusterStatus,
  heartbeatTimeouts,
  nextCheckAfterHeartbeat,
  nextCheckAfterSweep,
  withSilence,
  nodeStatus,
  type Presence,
  relayStatus,
} from '@platform/core/clusters/status'
import { timelineProjection } from '@platform/core/clusters/timeline-projection'
import * as Timeline from '@platform/core/jobs/cluster-timeline'
import * as keys from '@platform/core/db/keys'
import { get, patch, query, upsert } from '@platform/core/db/table'
import { removeAll, transact } from '@platform/core/db/transact'
import { newId } from '@platform/core/id'
import * as Job from '@platform/core/jobs/job'
import type { OutboxRecord } from '@platform/core/outbox/record'
import { heartbeat } from '@platform/core/relays/heartbeat'
import { beforeAll, expect, test } from 'vitest'
import { advanceClock } from '../../support/clock.ts'
import {
  bootstrapPlatform,
  callerWithCluster,
  errorCodeOf,
  errorOf,
  expectError,
  newCaller,
  requestErrorCode,
} from '../../support/fixtures.ts'
import { isLong } from '../../support/long.ts'
import { onStoreCall } from '../../support/store-calls.ts'
import { storeClusters } from '../support/batches.ts'
import { dispatchedJob, runJob, scriptJob } from '../support/jobs.ts'
import {
  commitEffects,
  drainOutbox,
  readPendingRecords,
  statusChangedEffect,
  writeOutboxRecords,
} from '../support/outbox.ts'

beforeAll(bootstrapPlatform)

const firstPage = { page: 1, pageSize: 20 }

const register = async (caller: Caller, name: string, type: 'Hypervisor' | 'CloudLocal' = 'Hypervisor') =>
  (await Cluster.register(caller, { name, type })).id

async function namesOf(caller: Caller, query: object): Promise<[string[], number]> {
  const { items, totalCount } = await Cluster.list(caller, { ...firstPage, ...query })
  return [items.map(({ name }) => name), totalCount]
}

test('lists concurrent registrations once each, newest first', async () => {
  const caller = await newCaller()
  const names = Array.from({ length: 12 }, (_, index) => `cluster ${index}`)
  await Promise.all(names.map((name) => register(caller, name)))
  const pages = await Promise.all([1, 2, 3].map((page) => Cluster.list(caller, { page, pageSize: 5 })))
  expect(pages.map(({ totalCount }) => totalCount)).toEqual([12, 12, 12])
  const clusters = pages.flatMap(({ items }) => items)
  expect(clusters.map(({ name }) => name).toSorted()).toEqual(names.toSorted())
  const ids = clusters.map(({ id }) => id)
  expect(ids).toEqual(ids.toSorted().toReversed())
})

test.runIf(isLong)(
  'a search with a filter reports whether it covers more than the newest 10,000 clusters',
  async () => {
    const caller = await newCaller()
    const query = { page: 1, pageSize: 1, search: 'x', type: 'Hypervisor' } as const
    expect(await Cluster.list(caller, query)).toMatchObject({ totalCount: 0, searchedAll: true })
    for (let count = 0; count <= 10_000; count += 1000) await storeClusters(caller, 1000)
    expect(await Cluster.list(caller, query)).toMatchObject({ searchedAll: false })
  },
)

test('the total of a list includes a cluster that is registered while the list is read', async () => {
  const caller = await newCaller()
  await register(caller, 'one')
  let registration: Promise<string> | undefined
  using _ = onStoreCall({
    before: async ({ command }) => {
      if (command === 'QueryCommand' && registration === undefined) await (registration = register(caller, 'two'))
    },
  })
  expect(await namesOf(caller, {})).toEqual([['two', 'one'], 2])
})

test('searches parts of names case-insensitively, together with other filters', async () => {
  const caller = await newCaller()
  for (const name of ['Berlin-1', 'berlin-2', 'MÜNCHEN-1', 'paris [a.*]']) {
    await register(caller, name, name.endsWith('2') ? 'CloudLocal' : 'Hypervisor')
  }
  const search = (text: string, query: object = {}) => namesOf(caller, { search: text, ...query })
  expect(await search('BERLIN')).toEqual([['berlin-2', 'Berlin-1'], 2])
  expect(await search('münchen')).toEqual([['MÜNCHEN-1'], 1])
  expect(await search('[a.*]')).toEqual([['paris [a.*]'], 1])
  expect(await search('berlin', { type: 'CloudLocal' })).toEqual([['berlin-2'], 1])
  expect(await search('berlin', { status: 'Offline' })).toEqual([[], 0])
  expect(await search('berlin', { page: 2, pageSize: 1 })).toEqual([['Berlin-1'], 2])
  expect(await search('rome')).toEqual([[], 0])
  expect((await search(' '))[1]).toBe(4)
})

test('lists clusters by ids in the given order, filtered and paged', async () => {
  const caller = await newCaller()
  const [cloud, metal, removed, metal2] = [
    await register(caller, 'cloud', 'CloudLocal'),
    await register(caller, 'metal'),
    await register(caller, 'removed'),
    await register(caller, 'metal 2'),
  ]
  await Cluster.remove(caller, removed)
  const ids = [metal2, removed, cloud, metal2, metal, newId('clus')].join(',')
  expect(await namesOf(caller, { ids })).toEqual([['metal 2', 'cloud', 'metal'], 3])
  expect(await namesOf(caller, { ids, type: 'CloudLocal' })).toEqual([['cloud'], 1])
  expect(await namesOf(caller, { ids, search: 'METAL' })).toEqual([['metal 2', 'metal'], 2])
  expect(await namesOf(caller, { ids, page: 2, pageSize: 2 })).toEqual([['metal'], 3])
})

test.each<[string, Partial<ClusterQuery>]>([
  ['all clusters', {}],
  ['a type', { type: 'Hypervisor' }],
  ['a type and a status', { type: 'Hypervisor', status: 'Pending' }],
  ['a search', { search: 'kept' }],
  ['a search and a type', { search: 'KEPT', type: 'Hypervisor' }],
  ['ids', { ids: '' }],
  ['a selector', { selector: 'platform/type=Hypervisor' }],
])('a walk through %s finds each cluster once while others come and go', async (_, filter) => {
  const caller = await newCaller()
  const keptIds: string[] = []
  const removedIds: string[] = []
  for (let index = 0; index < 7; index++) {
    keptIds.push(await register(caller, `kept ${index}`))
    removedIds.push(await register(caller, `kept for a while ${index}`))
  }
  const query = { ...filter, ...('ids' in filter && { ids: keptIds.toReversed().join(',') }), page: 1, pageSize: 3 }
  const foundIds: string[] = []
  let cursor: string | undefined
  do {
    const page = await Cluster.list(caller, { ...query, cursor })
    foundIds.push(...page.items.map(({ id }) => id))
    cursor = page.nextCursor
    for (const id of [removedIds.shift(), removedIds.pop()]) if (id !== undefined) await Cluster.remove(caller, id)
    await register(caller, `kept, new ${foundIds.length} ${newId('clus')}`)
  } while (cursor !== undefined)
  expect(new Set(foundIds).size).toBe(foundIds.length)
  expect(foundIds.filter((id) => keptIds.includes(id))).toEqual(keptIds.toReversed())
})

test('rejects a cursor that is malformed or of another list, tenant or filter, or comes with a page', async () => {
  const [caller, otherTenant] = [await newCaller(), await newCaller()]
  for (const name of ['a', 'b', 'c']) await register(caller, name)
  const { nextCursor: cursor = '' } = await Cluster.list(caller, { page: 1, pageSize: 1 })
  const forgedCursor = Buffer.from(Buffer.from(cursor, 'base64url').toString().toUpperCase()).toString('base64url')
  const paging = { page: 1, pageSize: 1 }
  for (const [who, query] of [
    ...['', 'x', '\u0000', `${cursor}A`, cursor.slice(0, -4), forgedCursor].map(
      (text) => [caller, { cursor: text }] as const,
    ),
    [otherTenant, { cursor }],
    [caller, { cursor, search: 'a' }],
    [caller, { cursor, page: 2 }],
  ] as const)
    expect(await errorCodeOf(Cluster.list(who, { ...paging, ...query }))).toBe('validation_failed')
  expect((await Cluster.list(caller, { ...paging, cursor })).items).toMatchObject([{ name: 'b' }])
})

test('limits the sites of an organisation, also under concurrent creation', async () => {
  const [caller, otherTenant] = [await newCaller(), await newCaller()]
  const firstSite = await Site.create(caller, { name: 'first' })
  await transact([patch(keys.siteCount(caller.organisationId), { add: { count: siteLimit - 2 } })])
  const creations = ['a', 'b', 'c'].map((name) => errorCodeOf(Site.create(caller, { name })))
  expect((await Promise.all(creations)).toSorted()).toEqual(['limit_reached', 'limit_reached', 'no error'])
  await Site.create(otherTenant, { name: 'first' })
  await Site.remove(caller, firstSite.id)
  await expectError(Site.remove(caller, firstSite.id), 'site_not_found')
  await Site.create(caller, { name: 'first' })
  const lastSite = { name: 'last' }
  expect((await errorOf(Site.create(caller, lastSite))).extra).toEqual({ limit: siteLimit, used: siteLimit })
  expect(await requestErrorCode('sites', 'POST /api/v1/sites', [caller, 'OrgAdmin'], lastSite)).toBe('limit_reached')
})

test('silence makes a cluster Degraded and then Offline, in reads, filters and the stored record', async () => {
  const { caller, enrolled } = await callerWithCluster()
  const { id } = enrolled.cluster
  for (const [silenceMs, status] of [
    [81_000, 'Degraded'],
    [40_000, 'Offline'],
  ] as const) {
    advanceClock(silenceMs)
    expect((await Cluster.read(caller, id)).status).toBe(status)
    expect((await Cluster.list(caller, { ...firstPage, status })).totalCount).toBe(1)
  }
  expect((await Cluster.read(caller, id)).nodes).toMatchObject([{ status: 'Unknown' }])
  advanceClock(180_000)
  await Promise.all([sweep(), sweep()])
  expect(await Cluster.find(caller.organisationId, id)).toMatchObject({ status: 'Offline', dueAtMs: 0 })
})

test('an Offline cluster becomes Healthy with its second heartbeat, which is requested at once', async () => {
  const { caller, enrolled } = await callerWithCluster()
  advanceClock(121_000)
  for (const expected of [
    ['Offline', 1],
    ['Healthy', 30],
  ]) {
    const response = await heartbeat(enrolled.request(), enrolled.heartbeat)
    const { status } = await Cluster.read(caller, enrolled.cluster.id)
    expect([status, response.heartbeatIntervalSeconds]).toEqual(expected)
  }
})

const present: Presence = {
  relayId: 'relay_x',
  lastSeenAtMs: 1_000_000,
  isSteady: true,
  saidGoodbye: false,
  nodeCount: 2,
  nodesOnline: 2,
}
const after = (seconds: number) => present.lastSeenAtMs + seconds * 1000
const timing = (heartbeatSeconds: number) => ({ heartbeatSeconds, channelHeartbeatSeconds: 300, brokerStartedAtMs: 0 })

test.each([
  ['no enrolled relay', { relayId: undefined }, 0, 'Pending'],
  ['a recent heartbeat', {}, 0, 'Healthy'],
  ['2·I + 20 s of silence', {}, 80, 'Healthy'],
  ['a second more than 2·I + 20 s', {}, 81, 'Degraded'],
  ['4·I of silence', {}, 120, 'Degraded'],
  ['a second more than 4·I', {}, 121, 'Offline'],
  ['one offline node', { nodesOnline: 1 }, 0, 'Degraded'],
  ['no online node', { nodesOnline: 0 }, 0, 'Offline'],
  ['a relay that said goodbye', { saidGoodbye: true }, 0, 'Offline'],
  ['the first heartbeat after Offline', { isSteady: false }, 0, 'Offline'],
] as const)('a cluster with %s is %4$s', (_, change, seconds, status) => {
  expect(clusterStatus(withSilence({ ...present, ...change }, timing(30)), after(seconds))).toBe(status)
})

test('a short heartbeat interval has a grace period of 20 s before Offline', () => {
  expect([22, 23].map((seconds) => clusterStatus(withSilence(present, timing(1)), after(seconds)))).toEqual([
    'Healthy',
    'Offline',
  ])
})

test('a silent relay becomes Stale and Disconnected, and nodes of an Offline cluster are Unknown', () => {
  const statuses = [80, 81, 121].map((seconds) => relayStatus(withSilence(present, timing(30)), after(seconds)))
  expect(statuses).toEqual(['Connected', 'Stale', 'Disconnected'])
  expect(nodeStatus('Online', 'Offline')).toBe('Unknown')
  expect(nodeStatus('Offline', 'Degraded')).toBe('Offline')
})

test.each([1, 10, 30, 60, 900])(
  'with an interval of %i s, at most every fourth heartbeat of 30 s reschedules the check, never too late',
  (intervalSeconds) => {
    const { degradedMs } = heartbeatTimeouts(intervalSeconds)
    let [scheduledMs, changes] = [0, 0]
    for (let atMs = 0; atMs < 120 * intervalSeconds * 1000; atMs += intervalSeconds * 1000 + 40) {
      const dueMs = nextCheckAfterHeartbeat(atMs, scheduledMs, intervalSeconds)
      if (dueMs !== undefined) changes++
      expect(scheduledMs === 0 || scheduledMs > atMs).toBe(true)
      scheduledMs = dueMs ?? scheduledMs
      expect(scheduledMs - atMs).toBeLessThanOrEqual(degradedMs + 45_000)
    }
    expect(changes).toBeLessThanOrEqual(intervalSeconds > 30 ? 60 : 30)
    expect(nextCheckAfterHeartbeat(0, scheduledMs, intervalSeconds)).toBeDefined()
  },
)

test('the sweep schedules another check only while silence can change the status', () => {
  const silentPresence = withSilence(present, timing(30))
  expect(nextCheckAfterSweep(silentPresence, after(81))).toBe(after(120) + 1)
  expect(nextCheckAfterSweep(silentPresence, after(121))).toBeUndefined()
  expect(nextCheckAfterSweep({ ...silentPresence, saidGoodbye: true }, after(1))).toBeUndefined()
})

const read = (caller: Caller, clusterId: string, page = 1, pageSize = 100) =>
  Timeline.read(caller, clusterId, { page, pageSize })

async function registeredCluster() {
  const caller = await newCaller()
  const { id } = await Cluster.register(caller, { name: `cluster ${newId('clus').slice(-8)}`, type: 'Hypervisor' })
  advanceClock(1)
  return { caller, id, organisationId: caller.organisationId }
}

const countEntries = async (organisationId: string, clusterId: string): Promise<number> =>
  (await query({ pk: keys.timeline(organisationId, clusterId, '').pk })).items.length

const statusChanges = (clusterId: string, count: number) =>
  Array.from({ length: count }, () => statusChangedEffect(clusterId, 'Healthy', 'Degraded'))

test('lists events, status changes, jobs and audit entries of one cluster, newest first', async () => {
  const { caller, enrolled } = await callerWithCluster()
  const clusterId = enrolled.cluster.id
  await register(caller, 'other')
  await commitEffects(caller, { audit: { action: 'site.create', resource: newId('site') } })
  advanceClock(1)
  await Cluster.update(caller, clusterId, { name: 'berlin-2' })
  advanceClock(1)
  const jobId = await dispatchedJob(caller, enrolled)
  advanceClock(1)
  await runJob(enrolled, jobId, 3)
  advanceClock(1)
  const { id: cancelledId } = await Job.submit(caller, scriptJob(clusterId))
  const otherUser = await newCaller(caller.organisationId)
  await Job.cancel(otherUser, cancelledId)
  await drainOutbox(caller.organisationId)

  const { items, totalCount } = await read(caller, clusterId)
  expect(totalCount).toBe(items.length)
  const times = items.map(({ at }) => at)
  expect(times).toEqual(times.toSorted().toReversed())
  const titles = items.map(({ kind, title }) => `${kind}: ${title}`)
  expect(titles.slice(0, 2)).toEqual(['job: Job cancelled', 'job: Job failed'])
  expect(titles.slice(2, 4).toSorted()).toEqual(['audit: cluster.update', 'event: Cluster changed'])
  expect(titles.slice(4).toSorted()).toEqual([
    'audit: cluster.register',
    'audit: relay.enroll',
    'event: Cluster registered',
    'event: Relay enrolled',
    'status: Became Healthy',
  ])
  expect(items.find(({ title }) => title === 'Job failed')).toEqual({
    id: expect.stringMatching(/^evt_/),
    at: expect.any(String),
    kind: 'job',
    title: 'Job failed',
    detail: 'exit_nonzero',
    resource: jobId,
    actor: { kind: 'user', id: caller.userId },
    startedAt: expect.any(String),
    endedAt: expect.any(String),
  })
  const cancellation = {
    detail: 'cancelled_by_user',
    resource: cancelledId,
    actor: { kind: 'user', id: otherUser.userId },
  }
  expect(items.find(({ title }) => title === 'Job cancelled')).toMatchObject(cancellation)
  const update = { detail: 'berlin-2', actor: { kind: 'user', id: caller.userId } }
  expect(items.find(({ title }) => title === 'cluster.update')).toMatchObject(update)
})

test('a cursor returns each entry once, although a job changes its status between the pages', async () => {
  const { caller, enrolled } = await callerWithCluster()
  const clusterId = enrolled.cluster.id
  const jobId = await dispatchedJob(caller, enrolled)
  advanceClock(1)
  await Cluster.update(caller, clusterId, { name: 'berlin-2' })
  await drainOutbox(caller.organisationId)
  const titles: string[] = []
  let cursor: string | undefined
  do {
    const page = await Timeline.read(caller, clusterId, { page: 1, pageSize: 1, cursor })
    titles.push(...page.items.map(({ title }) => title))
    cursor = page.nextCursor
    if (titles.length === 1) await runJob(enrolled, jobId)
  } while (cursor !== undefined)
  expect(titles).toHaveLength((await read(caller, clusterId)).totalCount)
  expect(titles.filter((title) => title.startsWith('Job '))).toEqual(['Job completed'])
})

test('repeated projections create each entry once', async () => {
  const { caller, id, organisationId } = await registeredCluster()
  const records = await readPendingRecords(organisationId)
  await Promise.all([1, 2, 3].map(async () => timelineProjection.beforeCommit?.(organisationId, records)))
  await drainOutbox(organisationId)
  expect((await read(caller, id)).totalCount).toBe(2)
})

const copyOf = (record: OutboxRecord, delayMs: number): OutboxRecord => ({
  ...record,
  atMs: record.atMs + delayMs,
  events: record.events.map((event) => Object.assign({}, event, { id: newId('evt') })),
})

test('shows the newest 10,000 entries of the last 90 days', async () => {
  const { caller, id, organisationId } = await registeredCluster()
  await Job.submit(caller, scriptJob(id))
  await drainOutbox(organisationId)
  advanceClock(90 * 24 * 3_600_000 + 1000)
  expect(await read(caller, id)).toMatchObject({ items: [], totalCount: 0 })
  const [oldJob, newJob] = [await Job.submit(caller, scriptJob(id)), await Job.submit(caller, scriptJob(id))]
  await removeAll(keys.job(organisationId, oldJob.id))
  const { items } = await read(caller, id)
  expect(items.filter(({ kind }) => kind === 'job').map(({ resource }) => resource)).toEqual([newJob.id])
  await writeOutboxRecords(caller, statusChanges(id, 20))
  const records = await readPendingRecords(organisationId)
  for (let copy = 0; copy < 510; copy += 30) {
    const copies = Array.from({ length: 30 }, (_, index) => records.map((record) => copyOf(record, copy + index)))
    await timelineProjection.beforeCommit?.(organisationId, copies.flat())
  }
  expect(await read(caller, id)).toMatchObject({ totalCount: 10_000 })
  expect((await read(caller, id, 100, 100)).items).toHaveLength(100)
  expect((await read(caller, id, 101, 100)).items).toEqual([])
})

test('purges the timeline of a removed cluster, including late entries', async () => {
  const { caller, id, organisationId } = await registeredCluster()
  await writeOutboxRecords(caller, statusChanges(id, 120))
  await drainOutbox(organisationId)
  // Up to four entries share an item.
  expect(await countEntries(organisationId, id)).toBe(33)
  await commitEffects(caller, statusChangedEffect(id, 'Degraded', 'Offline'))
  await Cluster.remove(caller, id)
  await sweep()
  expect(await countEntries(organisationId, id)).toBe(0)
  await drainOutbox(organisationId)
  expect(await countEntries(organisationId, id)).toBe(1)
  for (const pauseMs of [61_000, 2000]) {
    advanceClock(pauseMs)
    await sweep()
  }
  expect(await countEntries(organisationId, id)).toBe(0)
  expect(await get(keys.clusterPurge(id))).toBeUndefined()
  await expectError(read(caller, id), 'cluster_not_found')
})

test('marks audit entries that a caller has appended', async () => {
  const { caller, id } = await registeredCluster()
  await Audit.appendEntry(caller, { action: 'cluster.update', resource: id, detail: 'Approved' })
  await drainOutbox(caller.organisationId)
  const { items } = await read(caller, id)
  expect(items.filter(({ kind }) => kind === 'audit').map(({ title, extra }) => [title, extra])).toEqual([
    ['cluster.update', true],
    ['cluster.register', undefined],
  ])
})

test.each([
  [3999, undefined],
  [4000, { code: 'rate_limited', extra: { retryAfterSeconds: 60 } }],
  [4001, { code: 'rate_limited', extra: { retryAfterSeconds: 60 } }],
])('a removal while %i removed clusters wait for their purge has the result %j', async (count, error) => {
  const caller = await newCaller()
  const { id } = await Cluster.register(caller, { name: 'x', type: 'Hypervisor' })
  await transact([upsert(keys.removedClusters(caller.organisationId), { set: { count } })])
  const removal = Cluster.remove(caller, id)
  if (error === undefined) return removal
  expect(await errorOf(removal)).toMatchObject(error)
  expect((await Cluster.read(caller, id)).id).toBe(id)
})
