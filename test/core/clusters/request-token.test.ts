import { createHash, createPublicKey } from 'node:crypto'
import { beforeAll, expect, test } from 'vitest'
import { advanceClock } from '../../support/clock.ts'
import * as Cluster from '@platform/core/clusters/cluster'
import { nowSeconds } from '@platform/core/clock'
import { newId } from '@platform/core/id'
import { enroll } from '@platform/core/relays/enrollment'
import { authenticateRelay } from '@platform/core/relays/request-auth'
import {
  decodeToken,
  encodeToken,
  malformedTokens,
  signEdDsa,
  wrongRelayClaims,
  wrongSignatures,
} from '../../support/forged-tokens.ts'
import { onStoreCall, countStoreCalls } from '../../support/store-calls.ts'
import {
  newCaller,
  enrollRequest,
  errorCodeOf,
  newRelayKey,
  relayToken,
  bootstrapPlatform,
} from '../../support/fixtures.ts'

/** Whether a request is that of an enrolled relay: its token says who, for which path, with which body, and when. */

const path = '/api/v1/relay/heartbeat'
const body = Buffer.from('{"nodes":[]}')

async function enrolled() {
  const { organisationId, ...caller } = await newCaller()
  const cluster = await Cluster.register({ organisationId, ...caller }, { name: newId('clus'), type: 'Hypervisor' })
  const key = newRelayKey()
  const { relayId } = await enroll({ ...enrollRequest(cluster.enrollmentToken), publicKey: key.wire })
  const token = async (at = path, text = body.toString()) =>
    (await relayToken(relayId, key.privateKey, at, text)).authorization.slice('Relay '.length)
  return { relayId, key: key.privateKey, organisationId, clusterId: cluster.id, token }
}

type Relay = Awaited<ReturnType<typeof enrolled>>
let [own, other]: Relay[] = []
let good = ''
beforeAll(async () => {
  await bootstrapPlatform()
  ;[own, other] = [await enrolled(), await enrolled()]
  good = await own.token()
})

const heard = (token: string, at = path, bytes: Uint8Array = body) => errorCodeOf(authenticateRelay(token, at, bytes))

test('a relay is who its token says, for its cluster', async () => {
  const { relayId, organisationId, clusterId } = own!
  const { iat, jti } = decodeToken(good).claimFields
  expect(await authenticateRelay(good, path, body)).toEqual({
    kind: 'relay',
    relayId,
    organisationId,
    clusterId,
    tokenId: jti,
    issuedAtMs: Number(iat) * 1000,
  })
})

test('a token is for one path and one body', async () => {
  expect(await heard(good, '/api/v1/relay/goodbye')).toBe('unauthenticated')
  expect(await heard(good, path, Buffer.from('{"nodes":[1]}'))).toBe('unauthenticated')
  expect(await heard(good, path, new Uint8Array())).toBe('unauthenticated')
  expect(await heard(await own!.token(path, ''), path, new Uint8Array())).toBe('no error')
})

test.for(['wrongly claimed', 'wrongly signed', 'mangled'] as const)(
  'a token that is %s is refused, whatever is wrong with it',
  async (kind) => {
    const made = {
      'wrongly claimed': () => wrongRelayClaims(good, own!, other!),
      'wrongly signed': () => wrongSignatures(good, createPublicKey(own!.key)),
      mangled: () => malformedTokens(good),
    }
    const forgeries = Object.entries(made[kind]())
    expect(forgeries.length).toBeGreaterThan(15)
    for (const [name, token] of forgeries) expect([name, await heard(token)]).toEqual([name, 'unauthenticated'])
  },
)

/** The good token, but issued and ending so many seconds from now. */
function timed(issuedSeconds: number, endsSeconds: number): string {
  const { headerFields, claimFields } = decodeToken(good)
  const [iat, exp] = [nowSeconds() + issuedSeconds, nowSeconds() + endsSeconds]
  return encodeToken(headerFields, { ...claimFields, iat, exp }, signEdDsa(own!.key))
}

test('clocks may differ by a minute, and a token lives for one at most', async () => {
  const taken = [timed(0, 60), timed(55, 115), timed(-55, 5), timed(-110, -55)]
  for (const token of taken) expect(await heard(token)).toBe('no error')
  const refused = [timed(0, 61), timed(65, 120), timed(-125, -65), timed(-190, -130)]
  for (const token of refused) expect(await heard(token)).toBe('unauthenticated')
})

test('an id of eight to sixty-four letters makes a request unique', async () => {
  const { headerFields, claimFields } = decodeToken(good)
  const withId = (jti: string): string => encodeToken(headerFields, { ...claimFields, jti }, signEdDsa(own!.key))
  for (const length of [8, 64]) expect(await heard(withId('x'.repeat(length)))).toBe('no error')
  for (const length of [7, 65]) expect(await heard(withId('x'.repeat(length)))).toBe('unauthenticated')
})

test('a relay is looked up once; a name that is none, never; one that nobody has, each time', async () => {
  const relay = await enrolled()
  const token = await relay.token()
  expect(await countStoreCalls(() => heard(token))).toBe(1)
  expect(await countStoreCalls(() => heard(token))).toBe(0)
  const named = (kid: unknown) => {
    const { headerFields, claimFields } = decodeToken(token)
    return encodeToken({ ...headerFields, kid }, claimFields, signEdDsa(relay.key))
  }
  expect(await countStoreCalls(async () => expect(await heard(named('relay'))).toBe('unauthenticated'))).toBe(0)
  const nobody = named(newId('relay'))
  for (const _ of [1, 2]) {
    expect(await countStoreCalls(async () => expect(await heard(nobody)).toBe('unauthenticated'))).toBe(1)
  }
})

test('a store that fails is no wrong token', async () => {
  const relay = await enrolled()
  const token = await relay.token()
  const broken = new RangeError('out of order')
  {
    using _ = onStoreCall({
      before: async () => {
        throw broken
      },
    })
    await expect(authenticateRelay(token, path, body)).rejects.not.toMatchObject({ code: 'unauthenticated' })
  }
  expect(await heard(token)).toBe('no error')
})

test('a token that has come to its end is refused a minute later', async () => {
  const token = await own!.token()
  advanceClock(85_000)
  expect(await heard(token)).toBe('no error')
  advanceClock(10_000)
  expect(await heard(token)).toBe('unauthenticated')
})

test('the hash of a body is that of its bytes', async () => {
  const bytes = Uint8Array.from([0, 255, 195, 40])
  const { headerFields, claimFields } = decodeToken(good)
  const bodySha256 = createHash('sha256').update(bytes).digest('base64url')
  const token = encodeToken(headerFields, { ...claimFields, bodySha256 }, signEdDsa(own!.key))
  expect(await heard(token, path, bytes)).toBe('no error')
})
