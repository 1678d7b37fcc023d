import { sweepClusters } from '@platform/core/background/due-items'
import { sweep } from '@platform/core/background/sweep'
import { now } from '@platform/core/clock'
import * as Cluster from '@platform/core/clusters/cluster'
import * as keys from '@platform/core/db/keys'
import { get } from '@platform/core/db/table'
import { recordChannelEvent } from '@platform/core/relays/channel-presence'
import { enroll, issue } from '@platform/core/relays/enrollment'
import { goodbye, heartbeat } from '@platform/core/relays/heartbeat'
import { afterAll, beforeAll, expect, test, vi } from 'vitest'
import { advanceClock } from '../../support/clock.ts'
import { bootstrapPlatform, callerWithCluster, enrollRequest } from '../../support/fixtures.ts'
import { runBefore } from '../support/interleaving.ts'

beforeAll(async () => {
  vi.useFakeTimers({ toFake: ['Date'] })
  await bootstrapPlatform()
})
afterAll(() => {
  vi.useRealTimers()
})

async function relayWithCluster() {
  const { caller, enrolled } = await callerWithCluster()
  await sweep()
  const { relayId } = enrolled.relay
  const clusterId = enrolled.cluster.id
  const tell = (isOpen: boolean, session = 'A', version = 1, atMs = now()) =>
    recordChannelEvent({ relayId, clientId: `platform-${relayId}-instance-1`, session, version, isOpen, atMs })
  const beat = (channel?: 'open' | 'closed') => heartbeat(enrolled.request(), { ...enrolled.heartbeat, channel })
  const readStatus = async () => (await Cluster.read(caller, clusterId)).status
  const statusAfter = async (ms: number) => {
    advanceClock(ms)
    return readStatus()
  }
  const readCluster = async () => (await get(keys.cluster(caller.organisationId, clusterId))) ?? {}
  return { caller, enrolled, clusterId, relayId, tell, beat, status: readStatus, statusAfter, stored: readCluster }
}

/** Advances the clock with a sweep at least once a minute, so that the platform counts no downtime. */
async function pass(seconds: number): Promise<void> {
  for (let secondsLeft = seconds; secondsLeft > 0; secondsLeft -= 60) {
    advanceClock(Math.min(60, secondsLeft) * 1000)
    await sweep()
  }
}

const intervalOf = async (sent: ReturnType<typeof heartbeat>) => (await sent).heartbeatIntervalSeconds

test('the interval is 300 s only while the broker and the relay report an open channel', async () => {
  const { caller, clusterId, tell, beat } = await relayWithCluster()
  expect(await intervalOf(beat('open'))).toBe(30)
  await tell(true)
  expect(await intervalOf(beat(undefined))).toBe(30)
  advanceClock(6000)
  expect(await intervalOf(beat('open'))).toBe(300)
  const detail = await Cluster.read(caller, clusterId)
  expect(detail.relay?.channel).toBe('open')
  advanceClock(200_000)
  const { lastSeenAt, relay } = await Cluster.read(caller, clusterId)
  expect([Date.parse(lastSeenAt ?? ''), Date.parse(relay?.lastHeartbeatAt ?? '')]).toEqual([now(), now() - 200_000])
  expect(await intervalOf(beat('closed'))).toBe(30)
  expect((await Cluster.read(caller, clusterId)).relay?.channel).toBe('none')
})

test('a closed channel makes the cluster Degraded after 8 s and Offline after 60 s, found by the next check', async () => {
  const { tell, beat, status, statusAfter, stored } = await relayWithCluster()
  await tell(true)
  await beat('open')
  await pass(200)
  expect(await tell(false)).toMatchObject({ checkAtMs: now() + 8001 })
  expect([await statusAfter(8000), await statusAfter(1)]).toEqual(['Healthy', 'Degraded'])
  await sweepClusters()
  expect((await stored())['status']).toBe('Degraded')
  expect([await statusAfter(51_999), await statusAfter(1)]).toEqual(['Degraded', 'Offline'])
  await sweepClusters()
  expect((await stored())['status']).toBe('Offline')
  await beat('closed')
  expect(await status()).toBe('Offline')
  await beat('closed')
  expect(await status()).toBe('Healthy')
})

test('a heartbeat or a new channel within 8 s of the close keeps the cluster Healthy', async () => {
  for (const recover of ['heartbeat', 'channel'] as const) {
    const { tell, beat, statusAfter } = await relayWithCluster()
    await tell(true)
    await beat('open')
    advanceClock(200_000)
    await tell(false)
    advanceClock(3000)
    await (recover === 'heartbeat' ? beat('closed') : tell(true, 'B', 2))
    expect([recover, await statusAfter(60_000)]).toEqual([recover, 'Healthy'])
  }
})

test('channels that are open for less than two minutes do not change the status', async () => {
  const { tell, beat, statusAfter } = await relayWithCluster()
  for (let version = 1; version < 6; version++) {
    await tell(true, `session ${version}`, version)
    advanceClock(119_000)
    await tell(false, `session ${version}`, version)
    expect(await statusAfter(61_000)).toBe('Healthy')
    await beat('closed')
  }
  await tell(true, 'last', 6)
  await tell(false, 'last', 6)
  expect([await statusAfter(80_000), await statusAfter(1)]).toEqual(['Healthy', 'Degraded'])
})

test('a relay with an open channel that sends no heartbeats is Degraded and later Offline', async () => {
  const { tell, beat, status, statusAfter, stored } = await relayWithCluster()
  await tell(true)
  await beat('open')
  await pass(620)
  expect([await status(), await statusAfter(1)]).toEqual(['Healthy', 'Degraded'])
  await pass(580)
  expect(await status()).toBe('Offline')
  await pass(50)
  expect((await stored())['status']).toBe('Offline')
})

test('an idle relay with a channel writes to the index at every fourth heartbeat', async () => {
  const { tell, beat, stored } = await relayWithCluster()
  await tell(true)
  const dueKeys = new Set<unknown>()
  for (let count = 0; count < 20; count++) {
    await beat('open')
    dueKeys.add((await stored())['duesk'])
    advanceClock(301_000)
  }
  expect(dueKeys.size).toBeLessThanOrEqual(6)
})

const opening = (session: string, version: number, atSeconds: number) => ({ isOpen: true, session, version, atSeconds })
const close = (session: string, version: number, atSeconds: number) => ({ isOpen: false, session, version, atSeconds })

test.each([
  ['repeated', [opening('A', 1, 0), opening('A', 1, 0), close('A', 1, 5), close('A', 1, 9)], 'none'],
  ['a close before its open', [close('A', 1, 5), opening('A', 1, 0)], 'none'],
  ['a takeover', [opening('A', 1, 0), opening('B', 2, 5), close('A', 1, 6)], 'open'],
  ['a takeover in the other order', [opening('A', 1, 0), close('A', 1, 6), opening('B', 2, 5)], 'open'],
  ['an old open', [opening('B', 2, 5), opening('A', 1, 0)], 'open'],
  ['an old open after the close', [opening('B', 2, 5), close('B', 2, 6), opening('A', 1, 0)], 'none'],
  ['a lost close', [opening('A', 1, 0), opening('B', 2, 5)], 'open'],
  ['a lost open', [opening('A', 1, 0), close('B', 2, 5), opening('B', 2, 4)], 'none'],
  ['a version that starts again', [opening('A', 7, 0), opening('B', 0, 4000)], 'open'],
] as const)('orders events by connection and time: %s', async (_, events, expected) => {
  const { caller, clusterId, tell } = await relayWithCluster()
  const startMs = now()
  advanceClock(5000_000)
  for (const { isOpen, session, version, atSeconds } of events)
    await tell(isOpen, session, version, startMs + atSeconds * 1000)
  expect((await Cluster.read(caller, clusterId)).relay?.channel).toBe(expected)
})

test('the end of another process of the relay, and events of a replaced relay, change nothing', async () => {
  const { caller, clusterId, relayId, tell, stored } = await relayWithCluster()
  await tell(true)
  const former = { relayId, clientId: `platform-${relayId}-instance-0`, session: 'O', version: 9, isOpen: false }
  expect(await recordChannelEvent({ ...former, atMs: now() })).toBeUndefined()
  const { enrollmentToken } = await issue(caller, clusterId)
  await enroll(enrollRequest(enrollmentToken))
  expect(await tell(false)).toBeUndefined()
  expect((await stored())['channelId']).toBeUndefined()
})

test('a close that competes with a heartbeat, and one after a goodbye, are recorded', async () => {
  const { enrolled, tell, beat, status, stored } = await relayWithCluster()
  await tell(true)
  advanceClock(200_000)
  runBefore(/^UpdateItem/, () => beat('open'))
  expect(await tell(false)).toBeDefined()
  expect(await status()).toBe('Healthy')
  await tell(true, 'B', 2)
  await goodbye(enrolled.request(), { reason: 'SIGTERM' })
  expect(await tell(false, 'B', 2)).toBeUndefined()
  expect([await status(), (await stored())['channelClosedAtMs']]).toEqual(['Offline', now()])
})

test('after the clock was set back, the time of a closed channel counts from the current time', async () => {
  const { tell, beat, statusAfter } = await relayWithCluster()
  await tell(true)
  await beat('open')
  await pass(200)
  await tell(false)
  advanceClock(-150_000)
  await sweep()
  await beat('closed')
  await pass(80)
  expect(await statusAfter(0)).toBe('Healthy')
  await pass(60)
  expect(await statusAfter(0)).toBe('Offline')
})
