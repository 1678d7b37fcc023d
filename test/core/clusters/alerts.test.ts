import { sweepClusters } from '@platform/core/background/due-items'
import { sweep, sweepAndPlanChecks } from '@platform/core/background/sweep'
import type { Caller } from '@platform/core/caller'
import { now } from '@platform/core/clock'
import * as Cluster from '@platform/core/clusters/cluster'
import { config } from '@platform/core/config'
import * as keys from '@platform/core/db/keys'
import { patch } from '@platform/core/db/table'
import { transact } from '@platform/core/db/transact'
import { heartbeat } from '@platform/core/relays/heartbeat'
import { afterAll, beforeAll, expect, test, vi } from 'vitest'
import { advanceClock } from '../../support/clock.ts'
import { bootstrapPlatform, callerWithCluster, enrolledCluster } from '../../support/fixtures.ts'
import { onStoreCall } from '../../support/store-calls.ts'
import { messagesSentBy } from '../support/messages.ts'
import { listNotifications, minuteMs } from '../support/notifications.ts'
import { drainOutbox, readPendingEvents } from '../support/outbox.ts'

beforeAll(async () => {
  vi.useFakeTimers({ toFake: ['Date'] })
  await bootstrapPlatform()
})
afterAll(() => {
  vi.useRealTimers()
})

/** Advances the clock as if the schedules ran: a sweep every minute, and a check of clusters every 10 s in between. */
async function pass(seconds: number): Promise<void> {
  for (let elapsedSeconds = 10; elapsedSeconds <= seconds; elapsedSeconds += 10) {
    advanceClock(10_000)
    await (checks++ % 6 === 0 ? sweep() : sweepClusters())
  }
}
let checks = 0
async function passMinutes(minutes: number): Promise<void> {
  for (let count = 0; count < minutes; count++) {
    advanceClock(minuteMs)
    await sweep()
  }
}

const statusesOf = async (caller: Caller) =>
  (await readPendingEvents(caller, 'cluster.status_changed')).map(({ data }) => data['status'])
const readAlerts = async (caller: Caller) => {
  await drainOutbox(caller.organisationId)
  return (await listNotifications(caller)).items.map(({ type, title, body, count }) => ({ type, title, body, count }))
}
const typesOf = async (caller: Caller) => (await readAlerts(caller)).map(({ type }) => type.replace('Cluster', ''))

test('the sweep of each minute plans five checks of clusters between two sweeps', async () => {
  const messages = await messagesSentBy(config.PLAT_QUEUE_EVENTS, sweepAndPlanChecks)
  expect(messages.filter((message) => 'sweep' in (message as object))).toHaveLength(5)
})

test.each([0, 1, 2, 3])('reports both statuses of a silent cluster within 60 s, after %i heartbeats', async (beats) => {
  const { caller, enrolled } = await callerWithCluster()
  await sweep()
  for (let beat = 0; beat < beats; beat++) {
    await pass(30)
    await heartbeat(enrolled.request(), enrolled.heartbeat)
  }
  await pass(80)
  expect(await statusesOf(caller)).not.toContain('Degraded')
  await pass(50)
  expect(await statusesOf(caller)).toContain('Degraded')
  await pass(40)
  expect((await statusesOf(caller)).slice(-2)).toEqual(['Degraded', 'Offline'])
})

test.each([2, 60, 24 * 60])('%i minutes without sweeps do not count as silence', async (pauseMinutes) => {
  const { caller, enrolled } = await callerWithCluster()
  const knownCluster = await enrolledCluster(caller)
  await sweep()
  await heartbeat(knownCluster.request(), knownCluster.heartbeat)
  await drainOutbox(caller.organisationId)
  advanceClock(pauseMinutes * minuteMs)
  // A relay may return before the first sweep.
  await heartbeat(knownCluster.request(), knownCluster.heartbeat)
  await sweep()
  await pass(70)
  expect(await statusesOf(caller)).toEqual([])
  expect((await Cluster.read(caller, enrolled.cluster.id)).status).toBe('Healthy')
  await pass(120)
  expect((await Cluster.read(caller, enrolled.cluster.id)).status).toBe('Offline')
  advanceClock(pauseMinutes * minuteMs)
  await sweep()
  const { status, relay } = await Cluster.read(caller, enrolled.cluster.id)
  expect([status, relay?.status]).toEqual(['Offline', 'Disconnected'])
})

test.each([30, 24 * 60])('a clock set back by %i minutes does not revive silent clusters', async (minutes) => {
  const { caller, enrolled: offline } = await callerWithCluster()
  await passMinutes(4)
  const silentCluster = await enrolledCluster(caller)
  await sweep()
  advanceClock(-minutes * minuteMs)
  await interruptedSweep(/^TransactWrite/, 0)
  await sweep()
  const read = async ({ cluster }: typeof silentCluster) => {
    const { status, relay, lastSeenAt } = await Cluster.read(caller, cluster.id)
    return [status, relay?.status, Date.parse(lastSeenAt ?? '') <= now()]
  }
  expect(await read(silentCluster)).toEqual(['Healthy', 'Connected', true])
  expect(await read(offline)).toEqual(['Offline', 'Disconnected', true])
  await passMinutes(4)
  expect(await read(silentCluster)).toEqual(['Offline', 'Disconnected', true])
})

test.each([
  [10, 20, undefined],
  [11, 2, 11],
])('%i silent clusters with two changes each cause %i notifications', async (clusters, notifications, count) => {
  const { caller } = await callerWithCluster()
  await sweep()
  await passMinutes(3)
  await readAlerts(caller)
  const enrolledClusters = await Promise.all(Array.from({ length: clusters }, () => enrolledCluster(caller)))
  const countBefore = (await readAlerts(caller)).length
  await passMinutes(2)
  await pass(10)
  expect((await readPendingEvents(caller, 'cluster.status_changed')).length).toBe(2 * clusters)
  const newAlerts = (await readAlerts(caller)).slice(0, -countBefore)
  expect(newAlerts).toHaveLength(notifications)
  expect(newAlerts.map((alert) => alert.count)).toEqual(Array.from({ length: notifications }, () => count))
  if (count === undefined) return
  const names = enrolledClusters.map(({ cluster }) => cluster.name).toSorted()
  const body = `${names.slice(0, 10).join(', ')} and 1 more.`
  expect(newAlerts).toContainEqual({ type: 'ClusterOffline', title: '11 clusters are offline', body, count })
})

/** Runs a sweep in which the store accepts the first `allowed` matching commands and fails all later ones. */
async function interruptedSweep(command: RegExp, allowed: number): Promise<void> {
  let count = 0
  using _ = onStoreCall({
    before: async (call) => {
      if (command.test(call.command) && ++count > allowed) throw new RangeError('The store has failed.')
    },
  })
  await sweep()
}

test.each<[string, () => Promise<unknown>]>([
  ['three overlapping sweeps', () => Promise.all([sweep(), sweepClusters(), sweep()])],
  ['a sweep that stops halfway, and the next one', () => interruptedSweep(/^TransactWrite/, 5).then(() => sweep())],
  ['a sweep that stops before its first change', () => interruptedSweep(/^TransactWrite/, 0).then(() => sweep())],
])('%s report many changes in one notification of each type', async (_, sweeps) => {
  const { caller } = await callerWithCluster()
  await passMinutes(3)
  const countBefore = (await readAlerts(caller)).length
  await Promise.all(Array.from({ length: 12 }, () => enrolledCluster(caller)))
  await passMinutes(2)
  advanceClock(10_000)
  await sweeps()
  const titles = (await readAlerts(caller)).slice(0, -countBefore).map(({ title }) => title)
  expect(titles).toEqual(['12 clusters are offline', '12 clusters are degraded'])
})

test('reports silent clusters whose checks were due only after many others were reported', async () => {
  const { caller } = await callerWithCluster()
  await passMinutes(3)
  await Promise.all(Array.from({ length: 12 }, () => enrolledCluster(caller)))
  const lateClusters = await Promise.all(Array.from({ length: 12 }, () => enrolledCluster(caller)))
  for (const { cluster } of lateClusters) {
    const dueKey = keys.dueIndexKeys(cluster.id, now() + 135_000)
    await transact([patch(keys.cluster(caller.organisationId, cluster.id), { set: dueKey })])
  }
  await passMinutes(2)
  advanceClock(10_000)
  await sweep()
  advanceClock(10_000)
  await sweep()
  expect((await readAlerts(caller)).filter(({ title }) => title === '12 clusters are offline')).toHaveLength(2)
})

test('a sweep that stops while it reports many refused outages, and the next one, send one notification', async () => {
  const { caller } = await callerWithCluster()
  const enrolledClusters = await Promise.all(Array.from({ length: 24 }, () => enrolledCluster(caller)))
  await passMinutes(3)
  for (const _ of [1, 2]) {
    advanceClock(1000)
    for (const { request, heartbeat: report } of enrolledClusters) await heartbeat(request(), report)
  }
  await passMinutes(3)
  const countBefore = (await readAlerts(caller)).length
  advanceClock(13 * minuteMs)
  await interruptedSweep(/^Update/, 9)
  await sweep()
  expect((await readAlerts(caller)).slice(0, -countBefore).filter(({ count }) => count === 24)).toHaveLength(1)
  expect((await readAlerts(caller)).length).toBe(countBefore + 1)
})

test('reports an outage that a cooldown refused when the cooldown ends, if the outage persists', async () => {
  const { caller, enrolled } = await callerWithCluster()
  await sweep()
  const recover = async () => {
    for (const _ of [1, 2]) {
      advanceClock(1000)
      await heartbeat(enrolled.request(), enrolled.heartbeat)
    }
  }
  await passMinutes(3)
  await recover()
  expect(await typesOf(caller)).toEqual(['Recovered', 'Offline', 'HealthDegraded'])
  await passMinutes(3)
  expect(await typesOf(caller)).toHaveLength(3)
  await passMinutes(13)
  expect(await typesOf(caller)).toEqual(['Offline', 'Recovered', 'Offline', 'HealthDegraded'])
  expect((await readAlerts(caller))[0]?.body).toMatch(/^Since 2\d{3}-/)
  await recover()
  await passMinutes(3)
  await recover()
  const reportedTypes = ['HealthDegraded', 'Recovered', 'Offline']
  expect((await typesOf(caller)).slice(0, 3)).toEqual(reportedTypes)
  for (let count = 0; count < 16; count++) {
    await passMinutes(1)
    await heartbeat(enrolled.request(), enrolled.heartbeat)
  }
  // The second outage has ended, so its cooldown ends without an `Offline` report. The recovery from the reported
  // `HealthDegraded` is reported.
  expect((await typesOf(caller)).slice(0, 4)).toEqual(['Recovered', ...reportedTypes])
})
