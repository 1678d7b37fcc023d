import {
  clusterStatus,
  nextCheckAfterHeartbeat,
  nextCheckAfterSweep,
  nodeStatus,
  type Presence,
  relayStatus,
} from '@platform/core/clusters/status'
import { expect, test } from 'vitest'

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
