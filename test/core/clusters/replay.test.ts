import { expect, test } from 'vitest'
import { advanceClock } from '../../support/clock.ts'
import { type RelayCaller } from '@platform/core/caller'
import { now } from '@platform/core/clock'
import * as Cluster from '@platform/core/clusters/cluster'
import * as keys from '@platform/core/db/keys'
import { get } from '@platform/core/db/table'
import { transact } from '@platform/core/db/transact'
import { newId } from '@platform/core/id'
import { enroll } from '@platform/core/relays/enrollment'
import { consumeHeartbeatNonce, consumeNonce } from '@platform/core/clusters/request-nonce'
import { authenticateRelay } from '@platform/core/relays/request-auth'
import {
  newCaller,
  enrollRequest,
  errorCodeOf,
  newRelayKey,
  relayToken,
  bootstrapPlatform,
} from '../../support/fixtures.ts'

await bootstrapPlatform()

/** A beat of this id, issued at this second. */
const beat = (tokenId: string, issuedSeconds: number): RelayCaller => ({
  kind: 'relay',
  relayId: newId('relay'),
  organisationId: newId('org'),
  clusterId: newId('clus'),
  tokenId,
  issuedAtMs: issuedSeconds * 1000,
})

/** What is remembered after these beats, each at the second that it was issued. */
function after(beats: readonly [id: string, issuedSeconds: number][]): string {
  let remembered = ''
  for (const [id, issued] of beats)
    remembered = consumeHeartbeatNonce(remembered, beat(id, issued), issued * 1000) ?? 'refused'
  return remembered
}

const isTaken = (remembered: string, id: string, issued: number, atSeconds = issued): boolean =>
  consumeHeartbeatNonce(remembered, beat(id, issued), atSeconds * 1000) !== undefined

test('a token is spent once, and forgotten when its age alone would refuse it', async () => {
  const caller = beat('token-one', 1000)
  expect(await transact([consumeNonce(caller)])).toBeUndefined()
  expect(await errorCodeOf(transact([consumeNonce(caller)]))).toBe('unauthenticated')
  const item = await get(keys.relayRequest(caller.relayId, caller.tokenId))
  expect(item?.['ttl']).toBe(1130)
})

test('a beat is taken once, however many came between', () => {
  const beats = Array.from({ length: 10 }, (_, place) => [`beat-${place}`, 1000 + place] as [string, number])
  const remembered = after(beats)
  for (const [id, issued] of beats) expect([id, isTaken(remembered, id, issued, 1010)]).toEqual([id, false])
  expect(isTaken(remembered, 'beat-10', 1010)).toBe(true)
})

test('beats may come in another order than they were issued in', () => {
  const remembered = after([
    ['late', 1020],
    ['early', 1000],
  ])
  expect(isTaken(remembered, 'middle', 1010, 1020)).toBe(true)
  for (const [id, issued] of [
    ['late', 1020],
    ['early', 1000],
  ] as const) {
    expect(isTaken(remembered, id, issued, 1020)).toBe(false)
  }
})

test('what is too old to be accepted at all is remembered no longer', () => {
  const remembered = after([
    ['first', 1000],
    ['second', 1130],
  ])
  expect(remembered.split(',')).toHaveLength(2)
  const younger = after([
    ['first', 1000],
    ['second', 1129],
  ])
  expect(younger.split(',')).toHaveLength(3)
})

test('of many beats at once the last thirty-two are remembered, and nothing as old as a forgotten one is taken', () => {
  const beats = Array.from({ length: 40 }, (_, place) => [`beat-${place}`, 1000 + place] as [string, number])
  const remembered = after(beats)
  expect(remembered.split(',')).toHaveLength(33)
  for (const [id, issued] of beats) expect([id, isTaken(remembered, id, issued, 1040)]).toEqual([id, false])
  // As old as the newest that was forgotten, and a second younger.
  expect(isTaken(remembered, 'other', 1007, 1040)).toBe(false)
  expect(isTaken(remembered, 'other', 1008, 1040)).toBe(true)
  const later = consumeHeartbeatNonce(remembered, beat('later', 1041), 1041_000) ?? ''
  expect(isTaken(later, 'other', 1008, 1041)).toBe(false)
  expect(isTaken(later, 'other', 1009, 1041)).toBe(true)
})

test('thirty-two beats are all remembered, and nothing is refused for its age', () => {
  const beats = Array.from({ length: 32 }, (_, place) => [`beat-${place}`, 1000 + place] as [string, number])
  const remembered = after(beats)
  expect(remembered.split(',')).toHaveLength(33)
  expect(isTaken(remembered, 'other', 900, 1031)).toBe(true)
})

test('of beats that come youngest first the oldest are forgotten, too', () => {
  const beats = Array.from({ length: 33 }, (_, place) => [`beat-${place}`, 1032 - place] as [string, number])
  const remembered = after(beats)
  for (const [id, issued] of beats) expect([id, isTaken(remembered, id, issued, 1040)]).toEqual([id, false])
  expect(isTaken(remembered, 'other', 1000, 1040)).toBe(false)
  expect(isTaken(remembered, 'other', 1001, 1040)).toBe(true)
})

const path = '/api/v1/relay/goodbye'

test.for([
  { clock: 'a minute ahead', aheadMs: 60_000 },
  { clock: 'right', aheadMs: 0 },
  { clock: 'a minute behind', aheadMs: -60_000 },
])('a spent request of a relay whose clock is $clock is remembered until its age refuses it', async ({ aheadMs }) => {
  const key = newRelayKey()
  const { enrollmentToken } = await Cluster.register(await newCaller(), { name: 'Berlin', type: 'Hypervisor' })
  const { relayId } = await enroll({ ...enrollRequest(enrollmentToken), publicKey: key.wire })
  advanceClock(aheadMs)
  const { authorization } = await relayToken(relayId, key.privateKey, path)

  const authenticate = () => authenticateRelay(authorization.slice('Relay '.length), path, Buffer.alloc(0))
  const caller = await authenticate()
  await transact([consumeNonce(caller)])
  const { ttl } = (await get(keys.relayRequest(relayId, caller.tokenId))) ?? {}
  advanceClock(Number(ttl) * 1000 - now())
  expect(await errorCodeOf(authenticate())).toBe('unauthenticated')
})
