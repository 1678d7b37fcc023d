import { createHash, createPublicKey } from 'node:crypto'
import type { RelayCaller } from '@platform/core/caller'
import { now, nowSeconds } from '@platform/core/clock'
import * as Cluster from '@platform/core/clusters/cluster'
import { consumeHeartbeatNonce, consumeNonce } from '@platform/core/clusters/request-nonce'
import * as keys from '@platform/core/db/keys'
import { get } from '@platform/core/db/table'
import { transact } from '@platform/core/db/transact'
import { newId } from '@platform/core/id'
import { enroll } from '@platform/core/relays/enrollment'
import { authenticateRelay } from '@platform/core/relays/request-auth'
import { beforeAll, expect, test } from 'vitest'
import { advanceClock } from '../../support/clock.ts'
import {
  bootstrapPlatform,
  enrollRequest,
  errorCodeOf,
  expectError,
  newCaller,
  newRelayKey,
  relayToken,
} from '../../support/fixtures.ts'
import {
  decodeToken,
  encodeToken,
  malformedTokens,
  signEdDsa,
  wrongRelayClaims,
  wrongSignatures,
} from '../../support/forged-tokens.ts'
import { countStoreCalls, onStoreCall } from '../../support/store-calls.ts'

const path = '/api/v1/relay/heartbeat'
const body = Buffer.from('{"nodes":[]}')

async function enrolledRelay() {
  const caller = await newCaller()
  const cluster = await Cluster.register(caller, { name: newId('clus'), type: 'Hypervisor' })
  const key = newRelayKey()
  const { relayId } = await enroll({ ...enrollRequest(cluster.enrollmentToken), publicKey: key.wire })
  const token = async (text = body.toString()) =>
    (await relayToken(relayId, key.privateKey, path, text)).authorization.slice('Relay '.length)
  return { relayId, key: key.privateKey, organisationId: caller.organisationId, clusterId: cluster.id, token }
}

type Relay = Awaited<ReturnType<typeof enrolledRelay>>
let relay: Relay, otherRelay: Relay
let validToken = ''
beforeAll(async () => {
  await bootstrapPlatform()
  relay = await enrolledRelay()
  otherRelay = await enrolledRelay()
  validToken = await relay.token()
})

const errorOf = (token: string, at = path, bytes: Uint8Array = body) => errorCodeOf(authenticateRelay(token, at, bytes))

/** The valid token with other claims, signed by the relay. */
function tokenWith(claims: object, header: object = {}): string {
  const { headerFields, claimFields } = decodeToken(validToken)
  return encodeToken({ ...headerFields, ...header }, { ...claimFields, ...claims }, signEdDsa(relay.key))
}

test('authenticates a relay as the one of its cluster', async () => {
  const { relayId, organisationId, clusterId } = relay
  const { iat, jti } = decodeToken(validToken).claimFields
  const issuedAtMs = Number(iat) * 1000
  const caller = { kind: 'relay', relayId, organisationId, clusterId, tokenId: jti, issuedAtMs }
  expect(await authenticateRelay(validToken, path, body)).toEqual(caller)
})

test('accepts a token for its path and body only', async () => {
  expect(await errorOf(validToken, '/api/v1/relay/goodbye')).toBe('unauthenticated')
  expect(await errorOf(validToken, path, Buffer.from('{"nodes":[1]}'))).toBe('unauthenticated')
  expect(await errorOf(validToken, path, new Uint8Array())).toBe('unauthenticated')
  expect(await errorOf(await relay.token(''), path, new Uint8Array())).toBe('no error')
  const bytes = Uint8Array.from([0, 255, 195, 40])
  const bodySha256 = createHash('sha256').update(bytes).digest('base64url')
  expect(await errorOf(tokenWith({ bodySha256 }), path, bytes)).toBe('no error')
})

test.for(['claims', 'signatures', 'format'] as const)('rejects tokens with invalid %s', async (kind) => {
  const forgedTokens = {
    claims: () => wrongRelayClaims(validToken, relay, otherRelay),
    signatures: () => wrongSignatures(validToken, createPublicKey(relay.key)),
    format: () => malformedTokens(validToken),
  }
  const tokens = Object.entries(forgedTokens[kind]())
  expect(tokens.length).toBeGreaterThan(15)
  for (const [name, token] of tokens) expect([name, await errorOf(token)]).toEqual([name, 'unauthenticated'])
})

test('tolerates a minute of clock skew, and limits tokens to a minute', async () => {
  const errorAt = (iat: number, exp: number) => errorOf(tokenWith({ iat: nowSeconds() + iat, exp: nowSeconds() + exp }))
  for (const [iat, exp] of [
    [0, 60],
    [55, 115],
    [-55, 5],
    [-110, -55],
  ] as const) {
    expect([iat, await errorAt(iat, exp)]).toEqual([iat, 'no error'])
  }
  for (const [iat, exp] of [
    [0, 61],
    [65, 120],
    [-125, -65],
    [-190, -130],
  ] as const) {
    expect([iat, await errorAt(iat, exp)]).toEqual([iat, 'unauthenticated'])
  }
  const token = await relay.token()
  advanceClock(85_000)
  expect(await errorOf(token)).toBe('no error')
  advanceClock(10_000)
  expect(await errorOf(token)).toBe('unauthenticated')
})

test('requires a token id of 8 to 64 characters', async () => {
  const errors = [7, 8, 64, 65].map((length) => errorOf(tokenWith({ jti: 'x'.repeat(length) })))
  expect(await Promise.all(errors)).toEqual(['unauthenticated', 'no error', 'no error', 'unauthenticated'])
})

test('caches known relays, and looks up unknown ids each time but malformed ones never', async () => {
  const { token } = await enrolledRelay()
  const valid = await token()
  const lookups = (kid: string) =>
    countStoreCalls(() => expectError(authenticateRelay(tokenWith({}, { kid }), path, body), 'unauthenticated'))
  expect(await countStoreCalls(() => authenticateRelay(valid, path, body))).toBe(1)
  expect(await countStoreCalls(() => authenticateRelay(valid, path, body))).toBe(0)
  expect(await lookups('relay')).toBe(0)
  const unknownId = newId('relay')
  expect([await lookups(unknownId), await lookups(unknownId)]).toEqual([1, 1])
})

test('does not report a store failure as an invalid token', async () => {
  const { token } = await enrolledRelay()
  const valid = await token()
  {
    using _ = onStoreCall({
      before: async () => {
        throw new RangeError('failed')
      },
    })
    await expect(authenticateRelay(valid, path, body)).rejects.not.toMatchObject({ code: 'unauthenticated' })
  }
  expect(await errorOf(valid)).toBe('no error')
})

const requestOf = (tokenId: string, issuedSeconds: number): RelayCaller => ({
  kind: 'relay',
  relayId: newId('relay'),
  organisationId: newId('org'),
  clusterId: newId('clus'),
  tokenId,
  issuedAtMs: issuedSeconds * 1000,
})

test('consumes a nonce once, and stores it until its age rejects the token', async () => {
  const request = requestOf('token-one', 1000)
  expect(await transact([consumeNonce(request)])).toBeUndefined()
  await expectError(transact([consumeNonce(request)]), 'unauthenticated')
  expect((await get(keys.relayRequest(request.relayId, request.tokenId)))?.['ttl']).toBe(1130)
})

test.for([60_000, 0, -60_000])('stores a nonce long enough for a clock that is %i ms ahead', async (aheadMs) => {
  const { token } = await enrolledRelay()
  advanceClock(aheadMs)
  const signed = await token()
  const caller = await authenticateRelay(signed, path, body)
  await transact([consumeNonce(caller)])
  const { ttl } = (await get(keys.relayRequest(caller.relayId, caller.tokenId))) ?? {}
  advanceClock(Number(ttl) * 1000 - now())
  expect(await errorOf(signed)).toBe('unauthenticated')
})

type Beat = readonly [tokenId: string, issuedSeconds: number]

/** The stored tokens after heartbeats that each arrive when they are issued. */
const storedAfter = (beats: readonly Beat[]): string =>
  beats.reduce(
    (stored, [id, issued]) => consumeHeartbeatNonce(stored, requestOf(id, issued), issued * 1000) ?? 'replay',
    '',
  )

const isAccepted = (stored: string, [id, issued]: Beat, atSeconds = issued): boolean =>
  consumeHeartbeatNonce(stored, requestOf(id, issued), atSeconds * 1000) !== undefined

const beats = (count: number, step = 1): Beat[] =>
  Array.from({ length: count }, (_, index) => [`beat-${index}`, (step > 0 ? 1000 : 1032) + step * index])

test.each([
  ['ten in order', beats(10), 1010, 11],
  [
    'two out of order',
    [
      ['late', 1020],
      ['early', 1000],
    ] as Beat[],
    1020,
    3,
  ],
  ['forty in order', beats(40), 1040, 33],
  ['thirty-three, newest first', beats(33, -1), 1040, 33],
])('accepts heartbeats once: %s', (_, sent, atSeconds, entries) => {
  const stored = storedAfter(sent)
  expect(stored.split(',')).toHaveLength(entries)
  for (const beat of sent) expect([beat, isAccepted(stored, beat, atSeconds)]).toEqual([beat, false])
  expect(isAccepted(stored, ['new', 1015], atSeconds)).toBe(true)
})

test('drops heartbeat tokens that their age rejects', () => {
  expect(
    storedAfter([
      ['first', 1000],
      ['second', 1130],
    ]).split(','),
  ).toHaveLength(2)
  expect(
    storedAfter([
      ['first', 1000],
      ['second', 1129],
    ]).split(','),
  ).toHaveLength(3)
})

test('stores the last 32 heartbeat tokens, and rejects tokens as old as a dropped one', () => {
  const all = storedAfter(beats(32))
  expect(all.split(',')).toHaveLength(33)
  expect(isAccepted(all, ['other', 900], 1031)).toBe(true)

  const newestFirst = storedAfter(beats(33, -1))
  expect([1000, 1001].map((issued) => isAccepted(newestFirst, ['other', issued], 1040))).toEqual([false, true])

  const stored = storedAfter(beats(40))
  expect([1007, 1008].map((issued) => isAccepted(stored, ['other', issued], 1040))).toEqual([false, true])
  const later = consumeHeartbeatNonce(stored, requestOf('later', 1041), 1041_000) ?? ''
  expect([1008, 1009].map((issued) => isAccepted(later, ['other', issued], 1041))).toEqual([false, true])
})
