import { beforeAll, expect, test } from 'vitest'
import { History, historyPoints } from '@platform/contract/history'
import { type Caller } from '@platform/core/caller'
import { now } from '@platform/core/clock'
import * as Cluster from '@platform/core/clusters/cluster'
import * as keys from '@platform/core/db/keys'
import { get, patch, query } from '@platform/core/db/table'
import { transact } from '@platform/core/db/transact'
import { readHistory } from '@platform/core/dashboard/history'
import { historyProjection, bucketAt, bucketMs } from '@platform/core/dashboard/history-projection'
import * as Job from '@platform/core/jobs/job'
import { sweep } from '@platform/core/background/sweep'
import { goodbye } from '@platform/core/relays/heartbeat'
import { beforeCommand } from '../../support/store-calls.ts'
import { newCaller, enrolledCluster, bootstrapPlatform, callerWithCluster } from '../../support/fixtures.ts'
import { drainOutbox, pendingRecords } from '../support/outbox.ts'
import { runJob, dispatchedJob } from '../support/jobs.ts'
import { advanceClock } from '../support/notifications.ts'

beforeAll(bootstrapPlatform)

const hourMs = 3_600_000
const none = { Healthy: 0, Degraded: 0, Pending: 0, Offline: 0 }
const nothing = { submitted: 0, completed: 0, failed: 0, cancelled: 0 }

/** The middle of a slot comes: what follows at once lies in one slot. */
const toNextSlot = (slots = 1): void => advanceClock(bucketAt(now()) + slots * bucketMs + bucketMs / 2 - now())

const points = async (caller: Caller, hours = 24) => (await readHistory(caller, hours)).points
const clustersOf = async (caller: Caller, hours?: number) =>
  (await points(caller, hours)).map(({ clusters }) => clusters?.byStatus)
const jobsOf = async (caller: Caller, hours?: number) => (await points(caller, hours)).map(({ jobs }) => jobs)
const register = (caller: Caller, name: string) => Cluster.register(caller, { name, type: 'Hypervisor' })

test.each([
  [1, 15, 4],
  [24, 15, 96],
  [50, 15, 200],
  [51, 30, 102],
  [168, 60, 168],
  [201, 120, 101],
  [720, 240, 180],
])('of %i hours there are steps of %i minutes, %i of them, up to now', async (hours, stepMinutes, count) => {
  const answer = await readHistory(await newCaller(), hours)
  expect(History.parse(answer)).toEqual(answer)
  expect([answer.stepMinutes, answer.points.length]).toEqual([stepMinutes, count])
  expect(answer.points.length).toBeLessThanOrEqual(historyPoints)
  const times = answer.points.map(({ at }) => Date.parse(at))
  for (const [index, at] of times.entries()) expect(at - (times[0] ?? 0)).toBe(index * stepMinutes * 60_000)
  const last = times.at(-1) ?? 0
  expect(last).toBeLessThanOrEqual(now())
  expect(last + stepMinutes * 60_000).toBeGreaterThan(now())
})

test('clusters stand in each step as they stood at its end, and in the last one as they stand now', async () => {
  const caller = await newCaller()
  toNextSlot()
  await register(caller, 'one')
  const two = await enrolledCluster(caller)
  await drainOutbox(caller.organisationId)
  toNextSlot(3)
  await goodbye(two.request(), { reason: 'test' })
  await drainOutbox(caller.organisationId)
  toNextSlot(2)
  await register(caller, 'three')
  const seen = await clustersOf(caller, 2)
  const before = { ...none, Pending: 1, Healthy: 1 }
  const after = { ...none, Pending: 1, Offline: 1 }
  const unknown = [undefined, undefined]
  expect(seen).toEqual([...unknown, before, before, before, after, after, { ...after, Pending: 2 }])
})

test('the status that silence makes is seen once the sweep has persisted it', async () => {
  const caller = await newCaller()
  toNextSlot()
  await enrolledCluster(caller)
  await drainOutbox(caller.organisationId)
  toNextSlot()
  await sweep()
  await drainOutbox(caller.organisationId)
  toNextSlot()
  expect((await clustersOf(caller, 1)).slice(1)).toEqual([
    { ...none, Healthy: 1 },
    { ...none, Offline: 1 },
    { ...none, Offline: 1 },
  ])
})

test('what happened before the range holds in it, however long ago that was', async () => {
  const caller = await newCaller()
  toNextSlot()
  await register(caller, 'one')
  await drainOutbox(caller.organisationId)
  advanceClock(40 * 24 * hourMs)
  expect(new Set((await clustersOf(caller, 720)).map((each) => each?.Pending))).toEqual(new Set([1]))
})

test('a look grows old from the one that follows it on: until then the store is not to forget it', async () => {
  const caller = await newCaller()
  const { organisationId } = caller
  toNextSlot()
  const first = keys.clusterHistory(organisationId, bucketAt(now()))
  await register(caller, 'one')
  await drainOutbox(organisationId)
  expect((await get(first))?.['ttl']).toBeUndefined()
  advanceClock(60 * 24 * hourMs)
  const second = keys.clusterHistory(organisationId, bucketAt(now()))
  await register(await newCaller(organisationId), 'two')
  await drainOutbox(organisationId)
  expect(Number((await get(first))?.['ttl'])).toBeGreaterThan(now() / 1000 + 30 * 24 * 3600)
  expect((await get(second))?.['ttl']).toBeUndefined()
})

test('a look at older tallies that comes late does not replace a newer one', async () => {
  const caller = await newCaller()
  const { organisationId } = caller
  toNextSlot()
  await register(caller, 'one')
  const records = await pendingRecords(organisationId)
  // Another worker books what comes after this one has looked at the tallies.
  const overtaken = beforeCommand(/^Update/, async () => {
    await register(caller, 'two')
    await historyProjection.beforeCommit?.(organisationId, await pendingRecords(organisationId))
  })
  await historyProjection.beforeCommit?.(organisationId, records)
  expect(overtaken()).toBe(true)
  expect(await get(keys.clusterHistory(organisationId, bucketAt(now())))).toMatchObject({ Pending: 2 })
})

test('looks that are repeated, and come in another order, leave what one look leaves', async () => {
  const caller = await newCaller()
  const { organisationId } = caller
  toNextSlot()
  for (const name of ['one', 'two', 'three']) await register(caller, name)
  const records = await pendingRecords(organisationId)
  for (const record of [...records, ...records.toReversed()])
    await historyProjection.beforeCommit?.(organisationId, [record])
  const { items } = await query({ pk: keys.clusterHistory(organisationId, 0).pk })
  expect(items.map((item) => item['Pending'])).toEqual([3])
})

test('jobs count in the step in which they were accepted and in the one in which they ended, each once', async () => {
  const { caller, enrolled } = await callerWithCluster()
  toNextSlot()
  const ids = []
  for (let count = 0; count < 4; count++) ids.push(await dispatchedJob(caller, enrolled))
  toNextSlot(2)
  const [completed = '', failed = '', cancelled = ''] = ids
  await runJob(enrolled, completed)
  await runJob(enrolled, failed, 1)
  await Job.cancel(caller, cancelled)
  toNextSlot()
  // Booked late: the records say when it was.
  await drainOutbox(caller.organisationId)
  await drainOutbox(caller.organisationId)
  expect(await jobsOf(caller, 1)).toEqual([
    { ...nothing, submitted: 4 },
    nothing,
    { submitted: 0, completed: 1, failed: 1, cancelled: 1 },
    nothing,
  ])
})

test('jobs that are cleared away with their cluster stay counted', async () => {
  const { caller, enrolled } = await callerWithCluster()
  toNextSlot()
  await runJob(enrolled, await dispatchedJob(caller, enrolled))
  await drainOutbox(caller.organisationId)
  toNextSlot()
  await Cluster.remove(caller, enrolled.cluster.id)
  await sweep()
  await drainOutbox(caller.organisationId)
  expect(await get(keys.jobTotals(caller.organisationId))).toMatchObject({ Completed: 0 })
  const counted = await jobsOf(caller, 1)
  expect(counted.slice(-2)).toEqual([{ ...nothing, submitted: 1, completed: 1 }, nothing])
})

test('a closing that is refused has counted no job, and the next one counts it once', async () => {
  const { caller, enrolled } = await callerWithCluster()
  await drainOutbox(caller.organisationId)
  toNextSlot()
  await dispatchedJob(caller, enrolled)
  const [record] = await pendingRecords(caller.organisationId)
  const steps = (await historyProjection.writes?.(caller.organisationId, record ? [record] : [])) ?? []
  expect(steps).toHaveLength(1)
  const refused = patch(keys.outbox(caller.organisationId, 'nothing'), { set: { x: 1 } })
  expect(await transact([...steps, refused])).toBeDefined()
  await drainOutbox(caller.organisationId)
  expect((await jobsOf(caller, 1)).at(-1)).toEqual({ ...nothing, submitted: 1 })
})

test('steps of more than a slot add up the jobs of their slots, and show the last look', async () => {
  const { caller, enrolled } = await callerWithCluster()
  // The beginning of a step of four hours.
  advanceClock(Math.ceil(now() / (4 * hourMs)) * 4 * hourMs - now() + bucketMs / 2)
  for (let slot = 0; slot < 3; slot++) {
    await dispatchedJob(caller, enrolled)
    await register(caller, `cluster ${slot}`)
    await drainOutbox(caller.organisationId)
    toNextSlot()
  }
  advanceClock(4 * hourMs)
  const seen = (await points(caller, 720)).slice(-2)
  expect(seen.map(({ jobs }) => jobs?.submitted)).toEqual([3, 0])
  expect(seen.map(({ clusters }) => clusters?.byStatus.Pending)).toEqual([3, 3])
})

test('a caller sees what it may read of its own organisation, and nothing of another', async () => {
  const [caller, other] = [await newCaller(), await newCaller()]
  const enrolled = await enrolledCluster(caller)
  await dispatchedJob(caller, enrolled)
  await drainOutbox(caller.organisationId)
  const as = (...permissions: ('clusters:read' | 'jobs:read')[]) =>
    points({ ...caller, permissions: new Set(permissions) }, 1)
  const membersOf = async (found: ReturnType<typeof as>) => Object.keys((await found).at(-1) ?? {})
  expect(await membersOf(as())).toEqual(['at'])
  expect(await membersOf(as('jobs:read'))).toEqual(['at', 'jobs'])
  expect(await membersOf(as('clusters:read'))).toEqual(['at', 'clusters'])
  const foreign = (await points(other, 1)).at(-1)
  expect(foreign).toMatchObject({ clusters: { byStatus: none }, jobs: nothing })
})
