import { siteLimit } from '@platform/contract/site'
import { sweep } from '@platform/core/background/sweep'
import type { Caller } from '@platform/core/caller'
import { shiftClock } from '@platform/core/clock'
import * as Cluster from '@platform/core/clusters/cluster'
import * as Site from '@platform/core/clusters/site'
import {
  clusterStatus,
  nextCheckAfterHeartbeat,
  nextCheckAfterSweep,
  nodeStatus,
  type Presence,
  relayStatus,
} from '@platform/core/clusters/status'
import * as keys from '@platform/core/db/keys'
import { patch, query } from '@platform/core/db/table'
import { transact } from '@platform/core/db/transact'
import { newId } from '@platform/core/id'
import * as Batch from '@platform/core/jobs/batches/batch'
import * as Job from '@platform/core/jobs/job'
import { beforeAll, expect, onTestFinished, test, vi } from 'vitest'
import {
  bootstrapPlatform,
  enrolledCluster,
  errorCodeOf,
  newCaller,
  requestErrorCode,
  expectError,
} from '../../support/fixtures.ts'
import { onStoreCall, type StoreCall } from '../../support/store-calls.ts'
import { advance, jobsForClusters, runProjections, submitAndExpand } from '../support/batches.ts'
import { dispatchedJob } from '../support/jobs.ts'

beforeAll(bootstrapPlatform)

const firstPage = { page: 1, pageSize: 20 }

test('registrations at the same moment are all listed once, newest first', async () => {
  const caller = await newCaller()
  const names = Array.from({ length: 12 }, (_, index) => `cluster ${index}`)
  await Promise.all(names.map((name) => Cluster.register(caller, { name, type: 'Hypervisor' })))
  const pages = await Promise.all([1, 2, 3].map((page) => Cluster.list(caller, { page, pageSize: 5 })))
  const listed = pages.flatMap(({ items }) => items)
  expect(pages.map(({ totalCount }) => totalCount)).toEqual([12, 12, 12])
  expect(listed.map(({ name }) => name).toSorted()).toEqual(names.toSorted())
  expect(listed.map(({ id }) => id)).toEqual(
    listed
      .map(({ id }) => id)
      .toSorted()
      .toReversed(),
  )
})

test('a search finds a part of the name, whatever its case and with other filters; it counts what it shows', async () => {
  const caller = await newCaller()
  for (const name of ['Berlin-1', 'berlin-2', 'MÜNCHEN-1', 'paris [a.*]']) {
    const type = name.endsWith('2') ? 'CloudLocal' : 'Hypervisor'
    await Cluster.register(caller, { name, type })
  }
  const found = async (search: string, more: object = {}) => {
    const { items, totalCount } = await Cluster.list(caller, { ...firstPage, search, ...more })
    return [items.map(({ name }) => name), totalCount]
  }
  expect(await found('BERLIN')).toEqual([['berlin-2', 'Berlin-1'], 2])
  expect(await found('münchen')).toEqual([['MÜNCHEN-1'], 1])
  expect(await found('[a.*]')).toEqual([['paris [a.*]'], 1])
  expect(await found('berlin', { type: 'CloudLocal' })).toEqual([['berlin-2'], 1])
  expect(await found('berlin', { status: 'Offline' })).toEqual([[], 0])
  expect(await found('berlin', { page: 2, pageSize: 1 })).toEqual([['Berlin-1'], 2])
  expect(await found('rome')).toEqual([[], 0])
  expect((await found(' '))[1]).toBe(4)
  expect((await Cluster.list(await newCaller(), { ...firstPage, search: 'berlin' })).totalCount).toBe(0)
})

test('an organisation has as many sites as its list shows, and no more', async () => {
  const [caller, neighbour] = [await newCaller(), await newCaller()]
  const first = await Site.create(caller, { name: 'first' })
  await transact([patch(keys.siteCount(caller.organisationId), { add: { count: siteLimit - 2 } })])
  const wanted = ['a', 'b', 'c'].map((name) => Site.create(caller, { name }))
  const outcomes = await Promise.all(wanted.map(errorCodeOf))
  expect(outcomes.toSorted()).toEqual(['limit_reached', 'limit_reached', 'no error'])
  await Site.create(neighbour, { name: 'first' })
  await Site.remove(caller, first.id)
  await expectError(Site.remove(caller, first.id), 'site_not_found')
  await Site.create(caller, { name: 'first' })
  await expectError(Site.create(caller, { name: 'last' }), 'limit_reached')
  expect(await requestErrorCode('sites', 'POST /api/v1/sites', [caller, 'OrgAdmin'], { name: 'last' })).toBe(
    'limit_reached',
  )
})

/** Clusters that are named: what shows many at once asks for them in one call. */

const page = { page: 1, pageSize: 100 }

const register = async (caller: Awaited<ReturnType<typeof newCaller>>, name: string) =>
  (await Cluster.register(caller, { name, type: name === 'cloud' ? 'CloudLocal' : 'Hypervisor' })).id

test('clusters that are named are listed in that order, each once; those that are gone are left out', async () => {
  const caller = await newCaller()
  const [alpha, beta, gamma] = [
    await register(caller, 'alpha'),
    await register(caller, 'beta'),
    await register(caller, 'gamma'),
  ]
  await Cluster.remove(caller, beta)
  const ids = [gamma, beta, alpha, gamma, newId('clus')].join(',')
  const { items, totalCount } = await Cluster.list(caller, { ...page, ids })
  expect([items.map(({ name }) => name), totalCount]).toEqual([['gamma', 'alpha'], 2])
})

test('named clusters are narrowed down, and paged, as all others are', async () => {
  const caller = await newCaller()
  const ids = [await register(caller, 'cloud'), await register(caller, 'metal'), await register(caller, 'metal 2')]
  const list = (query: object) => Cluster.list(caller, { ...page, ids: ids.join(','), ...query })
  expect((await list({ type: 'CloudLocal' })).items.map(({ name }) => name)).toEqual(['cloud'])
  expect((await list({ search: 'METAL' })).items.map(({ name }) => name)).toEqual(['metal', 'metal 2'])
  const second = await list({ page: 2, pageSize: 2 })
  expect([second.items.map(({ name }) => name), second.totalCount]).toEqual([['metal 2'], 3])
})

/** A cluster that was removed when so many of its jobs had ended. */
async function removedCluster(caller: Caller, jobs: number): Promise<string> {
  const { id } = (await enrolledCluster(caller)).cluster
  const { batchId } = await submitAndExpand(caller, { jobs: jobsForClusters([id], jobs) })
  await Batch.cancel(caller, batchId)
  await advance(caller, batchId)
  await runProjections(caller)
  await Cluster.remove(caller, id)
  return id
}

const jobsLeft = async (clusterId: string): Promise<number> =>
  (await query({ index: 'gsi1', pk: keys.clusterJobs(clusterId) })).items.length

/** Whether a call asks for jobs of one of these clusters, a part of them at a time. */
const looksForJobs = ({ input }: StoreCall, clusterIds: readonly string[]): boolean =>
  input.Limit !== undefined &&
  clusterIds.some((id) => keys.clusterJobs(id) === input.ExpressionAttributeValues?.[':pk'])

/** A sweep's time is what the clock says: it stands still but for what a test adds, however slow the machine is. */
function stopClock(): void {
  vi.useFakeTimers({ toFake: ['Date'] })
  onTestFinished(() => void vi.useRealTimers())
}

test('one sweep clears all ended jobs of a removed cluster, many times what one transaction holds', async () => {
  const clusterId = await removedCluster(await newCaller(), 260)
  expect(await jobsLeft(clusterId)).toBe(260)
  stopClock()
  await sweep()
  expect(await jobsLeft(clusterId)).toBe(0)
})

test('a job that is overdue has ended before anything is cleared', async () => {
  const caller = await newCaller()
  const jobId = await dispatchedJob(caller, await enrolledCluster(caller), {}, { deliverWithinSeconds: 60 })
  const clusterId = await removedCluster(caller, 3)
  shiftClock(61_000)
  const seen: string[] = []
  using _ = onStoreCall({
    before: async (call) => {
      if (looksForJobs(call, [clusterId])) seen.push((await Job.read(caller, jobId)).status)
    },
  })
  await sweep()
  expect(seen).toEqual(['Failed'])
})

test('clearing stops when a sweep has spent its time, and goes on with the cluster that has waited longest', async () => {
  const caller = await newCaller()
  const clusterIds: string[] = []
  for (let count = 0; count < 4; count++) {
    clusterIds.push(await removedCluster(caller, 60))
    shiftClock(10)
  }
  stopClock()
  const left = async () => (await Promise.all(clusterIds.map(jobsLeft))).toSorted((a, b) => a - b)
  using _ = onStoreCall({
    after: async (call) => {
      if (looksForJobs(call, clusterIds)) shiftClock(6000)
    },
  })
  await sweep()
  expect(await left()).toEqual([10, 10, 10, 60])
  shiftClock(2000)
  await sweep()
  expect(await left()).toEqual([0, 0, 10, 10])
})

const present: Presence = {
  relayId: 'relay_x',
  lastSeenAtMs: 1_000_000,
  isSteady: true,
  saidGoodbye: false,
  nodeCount: 2,
  nodesOnline: 2,
}
const after = (seconds: number) => 1_000_000 + seconds * 1000

test.each([
  ['no relay has enrolled', { relayId: undefined }, 0, 'Pending'],
  ['heard just now', {}, 0, 'Healthy'],
  ['2·I + 20 s of silence', {}, 80, 'Healthy'],
  ['a second more', {}, 81, 'Degraded'],
  ['4·I of silence', {}, 120, 'Degraded'],
  ['a second more than 4·I', {}, 121, 'Offline'],
  ['one node is not Online', { nodesOnline: 1 }, 0, 'Degraded'],
  ['no node is Online', { nodesOnline: 0 }, 0, 'Offline'],
  ['the relay said goodbye', { saidGoodbye: true }, 0, 'Offline'],
  ['the first beat after Offline', { isSteady: false }, 0, 'Offline'],
] as const)('a cluster where %s is %4$s', (_, change, seconds, status) => {
  expect(clusterStatus({ ...present, ...change }, after(seconds), 30)).toBe(status)
})

test('with a short interval the grace of 20 s holds before a cluster is Offline', () => {
  expect(clusterStatus(present, after(22), 1)).toBe('Healthy')
  expect(clusterStatus(present, after(23), 1)).toBe('Offline')
})

test('a relay goes Stale and Disconnected by the same limits', () => {
  expect([80, 81, 121].map((seconds) => relayStatus(present, after(seconds), 30))).toEqual([
    'Connected',
    'Stale',
    'Disconnected',
  ])
})

test('nothing is known of the nodes of an Offline cluster', () => {
  expect(nodeStatus('Online', 'Offline')).toBe('Unknown')
  expect(nodeStatus('Offline', 'Degraded')).toBe('Offline')
})

test('one hour of beats moves the due time at most thirty times, and silence is always noticed', () => {
  let filed = 0
  let moves = 0
  for (let at = 0; at < 3_600_000; at += 30_040) {
    const due = nextCheckAfterHeartbeat(at, filed, 30)
    if (due !== undefined) moves++
    filed = due ?? filed
    expect(filed - at).toBeGreaterThanOrEqual(80_000)
    expect(filed - at).toBeLessThanOrEqual(185_000)
  }
  expect(moves).toBeLessThanOrEqual(30)
})

test('the sweep looks again when silence would turn Degraded into Offline, and then no more', () => {
  expect(nextCheckAfterSweep(present, after(81), 30)).toBe(after(120) + 1)
  expect(nextCheckAfterSweep(present, after(121), 30)).toBeUndefined()
  expect(nextCheckAfterSweep({ ...present, saidGoodbye: true }, after(1), 30)).toBeUndefined()
})
