import { createHash, createPublicKey } from 'node:crypto'
import type { Caller, RelayCaller } from '@platform/core/caller'
import { now, nowSeconds } from '@platform/core/clock'
import * as Cluster from '@platform/core/clusters/cluster'
import { config } from '@platform/core/config'
import { consumeHeartbeatNonce } from '@platform/core/clusters/request-nonce'
import * as keys from '@platform/core/db/keys'
import { get, upsert } from '@platform/core/db/table'
import { transact } from '@platform/core/db/transact'
import { newId } from '@platform/core/id'
import type { OutboxRecord } from '@platform/core/outbox/record'
import { enroll, issue } from '@platform/core/relays/enrollment'
import { heartbeat } from '@platform/core/relays/heartbeat'
import { authenticateRelay } from '@platform/core/relays/request-auth'
import { beforeAll, expect, test } from 'vitest'
import { advanceClock } from '../../support/clock.ts'
import {
  bootstrapPlatform,
  callerWithCluster,
  enrollRequest,
  errorCodeOf,
  expectError,
  newCaller,
  newRelayKey,
  relayToken,
  requestErrorCode,
} from '../../support/fixtures.ts'
import {
  decodeToken,
  encodeToken,
  malformedTokens,
  signEdDsa,
  forgedRelayTokens,
  wrongSignatures,
} from '../../support/forged-tokens.ts'
import { countStoreCalls } from '../../support/store-calls.ts'
import { failCommands } from '../support/interleaving.ts'
import { listNotifications } from '../support/notifications.ts'
import { readAuditEntries, drainOutbox, readPendingEvents, readPendingRecords } from '../support/outbox.ts'

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

const errorOf = (token: string, requestPath = path, bytes: Uint8Array = body) =>
  errorCodeOf(authenticateRelay(token, requestPath, bytes))

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
    claims: () => forgedRelayTokens(validToken, relay, otherRelay),
    signatures: () => wrongSignatures(validToken, createPublicKey(relay.key)),
    format: () => malformedTokens(validToken),
  }
  const tokens = Object.entries(forgedTokens[kind]())
  expect(tokens.length).toBeGreaterThan(15)
  for (const [name, token] of tokens) expect([name, await errorOf(token)]).toEqual([name, 'unauthenticated'])
})

test('tolerates a minute of clock skew, and limits tokens to a minute', async () => {
  const errorAt = (iat: number, exp: number) => errorOf(tokenWith({ iat: nowSeconds() + iat, exp: nowSeconds() + exp }))
  const acceptedErrors = [errorAt(0, 60), errorAt(55, 115), errorAt(-55, 5), errorAt(-110, -55)]
  for (const code of await Promise.all(acceptedErrors)) expect(code).toBe('no error')
  const rejectedErrors = [errorAt(0, 61), errorAt(65, 120), errorAt(-125, -65), errorAt(-190, -130)]
  for (const code of await Promise.all(rejectedErrors)) expect(code).toBe('unauthenticated')
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
  const validToken = await token()
  const lookups = (kid: string) =>
    countStoreCalls(() =>
      expectError(
        authenticateRelay(tokenWith({}, { kid }), path, body),
        kid.length < 10 ? 'unauthenticated' : 'relay_revoked',
      ),
    )
  expect(await countStoreCalls(() => authenticateRelay(validToken, path, body))).toBe(1)
  expect(await countStoreCalls(() => authenticateRelay(validToken, path, body))).toBe(0)
  expect(await lookups('relay')).toBe(0)
  const unknownId = newId('relay')
  // An eventually consistent read, then a consistent one.
  expect([await lookups(unknownId), await lookups(unknownId)]).toEqual([2, 2])
})

test('does not report a store failure as an invalid token', async () => {
  const { token } = await enrolledRelay()
  const validToken = await token()
  {
    using _ = failCommands()
    await expect(authenticateRelay(validToken, path, body)).rejects.not.toMatchObject({ code: 'unauthenticated' })
  }
  expect(await errorOf(validToken)).toBe('no error')
})

const requestOf = (tokenId: string, issuedSeconds: number): RelayCaller => ({
  kind: 'relay',
  relayId: newId('relay'),
  organisationId: newId('org'),
  clusterId: newId('clus'),
  tokenId,
  issuedAtMs: issuedSeconds * 1000,
})

interface Beat {
  tokenId: string
  issued: number
}

const consume = (stored: string, { tokenId, issued }: Beat, atSeconds = issued) =>
  consumeHeartbeatNonce(stored, requestOf(tokenId, issued), atSeconds * 1000)

const storedAfter = (beats: readonly Beat[]): string =>
  beats.reduce((stored, beat) => consume(stored, beat) ?? 'replay', '')

const beatAt = (issued: number): Beat => ({ tokenId: `beat-${issued}`, issued })
const oldestFirst = (count: number) => Array.from({ length: count }, (_, index) => beatAt(1000 + index))
const newestFirst = Array.from({ length: 33 }, (_, index) => beatAt(1032 - index))

test.each([
  ['ten in order', oldestFirst(10), 1010, 11],
  ['two out of order', [beatAt(1020), beatAt(1000)], 1020, 3],
  ['forty in order', oldestFirst(40), 1040, 33],
  ['thirty-three, newest first', newestFirst, 1040, 33],
])('accepts heartbeats once: %s', (_, beats, atSeconds, entryCount) => {
  const nonces = storedAfter(beats)
  expect(nonces.split(',')).toHaveLength(entryCount)
  for (const beat of beats) expect([beat, consume(nonces, beat, atSeconds)]).toEqual([beat, undefined])
  expect(consume(nonces, { tokenId: 'new', issued: 1015 }, atSeconds)).toBeDefined()
})

test('drops heartbeat tokens that their age rejects', () => {
  const counts = [1130, 1129].map((issued) => storedAfter([beatAt(1000), beatAt(issued)]).split(',').length)
  expect(counts).toEqual([2, 3])
})

test.each([
  [100, 33],
  [1800, 2],
])('accepts heartbeats after the clock was set back by %i s', (seconds, entryCount) => {
  const nonces = storedAfter(oldestFirst(40).map(({ issued }) => beatAt(issued + seconds)))
  const next = consume(nonces, beatAt(1041), 1041) ?? ''
  expect(next.split(',')).toHaveLength(entryCount)
  expect(consume(next, beatAt(1041), 1041)).toBeUndefined()
})

test('stores the last 32 heartbeat tokens, and rejects tokens as old as a dropped one', () => {
  const isAccepted = (stored: string, issued: number, atSeconds: number) =>
    consume(stored, { tokenId: 'other', issued }, atSeconds) !== undefined
  const allNonces = storedAfter(oldestFirst(32))
  expect(allNonces.split(',')).toHaveLength(33)
  expect(isAccepted(allNonces, 900, 1031)).toBe(true)
  const reversedNonces = storedAfter(newestFirst)
  expect([1000, 1001].map((issued) => isAccepted(reversedNonces, issued, 1040))).toEqual([false, true])
  const nonces = storedAfter(oldestFirst(40))
  expect([1007, 1008].map((issued) => isAccepted(nonces, issued, 1040))).toEqual([false, true])
  const laterNonces = consume(nonces, beatAt(1041)) ?? ''
  expect([1008, 1009].map((issued) => isAccepted(laterNonces, issued, 1041))).toEqual([false, true])
})

const hourMs = 3_600_000
const origin = { address: '192.0.2.9' }

async function registration() {
  const caller = await newCaller()
  return { caller, ...(await Cluster.register(caller, { name: 'cluster', type: 'Hypervisor' })) }
}

const countByStatus = (caller: Caller) =>
  Promise.all(
    (['Pending', 'Healthy'] as const).map(
      async (status) => (await Cluster.list(caller, { page: 1, pageSize: 20, status })).totalCount,
    ),
  )

const tokenIdOf = (token: string): string => token.split('.')[0] ?? ''

const readNewestRecord = async (organisationId: string): Promise<Partial<OutboxRecord>> =>
  (await readPendingRecords(organisationId)).toSorted((a, b) => (a.id < b.id ? -1 : 1)).at(-1) ?? {}

test('enrollment makes the cluster Healthy, and commits events and an audit entry', async () => {
  const { caller, id, name, enrollmentToken } = await registration()
  expect(await countByStatus(caller)).toEqual([1, 0])
  const { relayId, clusterId, nodes, ...response } = await enroll(enrollRequest(enrollmentToken, ['a', 'b']), origin)
  expect([clusterId, nodes.map((node) => node.name), response.keys.keys.length]).toEqual([id, ['a', 'b'], 1])
  expect(await countByStatus(caller)).toEqual([0, 1])
  const { audit, events, address } = await readNewestRecord(caller.organisationId)
  expect(audit).toEqual({ action: 'relay.enroll', resource: id, detail: `${relayId} on host` })
  expect(address).toBe(origin.address)
  expect(events).toMatchObject([
    { name: 'cluster.enrolled', subject: id, data: { clusterId: id, name, relayId, nodeCount: 2 } },
    { name: 'cluster.status_changed', data: { clusterId: id, previousStatus: 'Pending', status: 'Healthy' } },
  ])
  expect(await get(keys.relay(relayId))).toMatchObject({
    relayId,
    clusterId: id,
    organisationId: caller.organisationId,
    hostname: 'host',
    platform: 'linux',
    relayVersion: '0.1.0',
  })
})

test('a second relay replaces the first one', async () => {
  const { caller, enrolled } = await callerWithCluster()
  const { cluster, relay } = enrolled
  const { enrollmentToken } = await issue(caller, cluster.id)
  const { relayId } = await enroll(enrollRequest(enrollmentToken, ['b']))
  const { events } = await readNewestRecord(caller.organisationId)
  const data = { clusterId: cluster.id, name: cluster.name, relayId }
  // There is no event about the status, which does not change.
  expect(events?.map((event) => [event.name, event.data])).toEqual([
    ['cluster.enrolled', { ...data, nodeCount: 1 }],
    ['relay.replaced', { ...data, previousRelayId: relay.relayId }],
  ])
  expect(await get(keys.relay(relay.relayId))).toBeUndefined()
  expect(await countByStatus(caller)).toEqual([0, 1])
  expect(await Cluster.read(caller, cluster.id)).toMatchObject({ nodes: [{ name: 'b' }], relay: { id: relayId } })
})

test('rejects duplicate node names without using the token', async () => {
  const { enrollmentToken } = await registration()
  const detail = { in: 'body', path: '/nodes', code: 'not_unique', message: 'node names must be unique' }
  await expect(enroll(enrollRequest(enrollmentToken, ['a', 'b', 'a']))).rejects.toMatchObject({
    code: 'validation_failed',
    extra: { details: [detail] },
  })
  expect(await enroll(enrollRequest(enrollmentToken))).toMatchObject({ nodes: [{ name: 'node-1' }] })
})

test.each([
  ['platform.example.com', 'https://platform.example.com'],
  ['PLATFORM.example.com', 'https://platform.example.com'],
  ['127.0.0.1:8080', config.PLAT_API_URL],
  ['evil.example.com', config.PLAT_API_URL],
])('the relay command of a request to %s uses %s', async (host, server) => {
  await transact([upsert(keys.platform(), { set: { publicUrl: 'https://platform.example.com' } })])
  const caller = { ...(await newCaller()), host }
  const { relayCommand } = await Cluster.register(caller, { name: 'berlin-1', type: 'Hypervisor' })
  expect(relayCommand).toContain(`curl -fsSL ${server}/relay/relay.mjs `)
  expect(relayCommand).toMatch(new RegExp(`--server ${server}$`))
})

test('issues an enrollment token only for a cluster of the organisation and revokes the unused one', async () => {
  const { caller, id, enrollmentToken } = await registration()
  await expectError(issue(await newCaller(caller.organisationId, 'Viewer'), id), 'forbidden')
  const issuedToken = await issue(caller, id)
  expect(issuedToken.relayCommand).toContain(`PLAT_ENROLLMENT_TOKEN=${issuedToken.enrollmentToken} `)
  const tokenId = tokenIdOf(issuedToken.enrollmentToken)
  const { audit } = await readNewestRecord(caller.organisationId)
  expect(audit).toEqual({ action: 'cluster.issue_enrollment_token', resource: id, detail: tokenId })
  expect(await get(keys.enrollment(tokenIdOf(enrollmentToken)))).toBeUndefined()
  // A token is valid for a day. The platform stores it for another week, to detect its reuse.
  const { ttl: expiresAtSeconds } = (await get(keys.enrollment(tokenId))) as { ttl: number }
  expect(Math.round((expiresAtSeconds * 1000 - now()) / hourMs)).toBe(8 * 24)
})

test('one of several concurrently issued tokens is valid', async () => {
  const { caller, id } = await registration()
  const results = await Promise.allSettled(Array.from({ length: 6 }, () => issue(caller, id)))
  const errors = results.flatMap((result) => (result.status === 'rejected' ? [result.reason.code] : []))
  expect(errors.filter((code) => code !== 'conflict')).toEqual([])
  const tokens = results.flatMap((result) => (result.status === 'fulfilled' ? [result.value.enrollmentToken] : []))
  const enrollments = await Promise.all(tokens.map((token) => errorCodeOf(enroll(enrollRequest(token)))))
  expect(enrollments.filter((code) => code === 'no error')).toHaveLength(1)
})

test('repeats the response for the same key for ten minutes, and rejects other keys', async () => {
  const { caller, id, enrollmentToken } = await registration()
  const request = enrollRequest(enrollmentToken, ['a', 'b'])
  const { relayId, nodes } = await enroll(request)
  expect(await enroll(request)).toMatchObject({ relayId, nodes })
  await expectError(enroll(enrollRequest(enrollmentToken)), 'enrollment_token_used')
  expect(await Cluster.read(caller, id)).toMatchObject({
    status: 'Healthy',
    nodeCount: 2,
    relay: { id: relayId, status: 'Connected' },
    nodes: ['a', 'b'].map((name) => ({ name, status: 'Online' })),
  })
  advanceClock(600_001)
  await expectError(enroll(request), 'enrollment_token_used')
})

test('reports reuse of a token once per hour, with the address of its origin', async () => {
  const { caller, id, enrollmentToken } = await registration()
  await enroll(enrollRequest(enrollmentToken))
  const reportsAfterReuse = async () => {
    for (let attempt = 0; attempt < 3; attempt++) {
      await expectError(enroll(enrollRequest(enrollmentToken), origin), 'enrollment_token_used')
      await drainOutbox(caller.organisationId)
    }
    return (await readAuditEntries(caller)).filter(({ action }) => action === 'relay.refuse')
  }
  advanceClock(hourMs - (now() % hourMs))
  expect(await reportsAfterReuse()).toMatchObject([{ resource: id, ...origin }])
  advanceClock(hourMs)
  expect(await reportsAfterReuse()).toHaveLength(2)
})

test('rejects forged, expired and replaced tokens', async () => {
  const { caller, id, enrollmentToken } = await registration()
  const forgedTokens = ['x', '.', '.x', `.${enrollmentToken}`].map((suffix) => enrollmentToken + suffix)
  for (const token of [...forgedTokens, 'anything']) {
    expect([token, await errorCodeOf(enroll(enrollRequest(token)))]).toEqual([token, 'enrollment_token_invalid'])
  }
  advanceClock(24 * hourMs)
  const request = enrollRequest(enrollmentToken)
  await expectError(enroll(request), 'enrollment_token_expired')
  const httpError = requestErrorCode('relay', 'POST /api/v1/relay/enroll', undefined, request)
  expect(await httpError).toBe('enrollment_token_expired')
  const issuedToken = await issue(caller, id)
  await expectError(enroll(request), 'enrollment_token_invalid')
  expect(await enroll(enrollRequest(issuedToken.enrollmentToken))).toMatchObject({ clusterId: id })
})

const letters = Array.from('ABCDEFGHIJKLMNOPQRSTUVWXYZ')

test.each([
  ['a restart', 'A A B B', 0],
  ['several restarts', 'A B C D E F', 0],
  ['a relay without instance ids', '- - A - -', 0],
  ['a delayed request of a stopped relay', 'A B a B B', 0],
  ['two relays', 'A B A', 1],
  ['a copy without instance ids', 'A - A', 1],
  ['two relays for an hour', 'A B A B A B A B', 1],
  ['three relays', 'A B C A B C', 1],
  ['a restart every heartbeat', letters.join(' '), 0],
  ['six relays', 'A B C D E F A', 1],
  ['26 relays', [...letters, ...letters].join(' '), 1],
  ['ten relays after many restarts', [...letters, ...Array(6).fill('0 1 2 3 4 5 6 7 8 9')].join(' '), 1],
])('detects relays with one key once an hour, without further store calls: %s', async (_, sequence, alarms) => {
  const { caller, enrolled } = await callerWithCluster()
  for (const name of sequence.split(' ')) {
    const request = enrolled.request()
    if (name === 'a') request.issuedAtMs -= 60_000
    const instanceId = name === '-' ? undefined : `instance-${name.toUpperCase()}`
    const calls = await countStoreCalls(() =>
      heartbeat(request, { ...enrolled.heartbeat, instanceId, scriptsIsolated: name !== 'A' }),
    )
    expect(calls).toBe(2)
    advanceClock(10_000)
  }
  const { relay } = await Cluster.read(caller, enrolled.cluster.id)
  expect(relay?.scriptsIsolated).toBe(!sequence.endsWith('A'))
  const events = await readPendingEvents(caller, 'relay.duplicate_detected')
  expect(events).toHaveLength(alarms)
  await drainOutbox(caller.organisationId)
  expect((await listNotifications(caller)).items.filter(({ type }) => type === 'SecurityAlert')).toHaveLength(alarms)
})
