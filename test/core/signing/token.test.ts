import { createPublicKey } from 'node:crypto'
import { beforeAll, expect, test } from 'vitest'
import { nowSeconds, shiftClock } from '@platform/core/clock'
import { newId } from '@platform/core/id'
import { ensureKeys } from '@platform/core/signing/keys'
import {
  accessTokenSeconds,
  issueAccessToken,
  issueModuleToken,
  moduleTokenSeconds,
  publicKeySet,
  verifyAccessToken,
} from '@platform/core/signing/access-token'
import {
  decodeToken,
  encodeToken,
  malformedTokens,
  platformSigningKeys,
  signEdDsa,
  wrongClaims,
  wrongSignatures,
} from '../../support/forged-tokens.ts'
import { onStoreCall, countStoreCalls } from '../../support/store-calls.ts'
import { errorCodeOf } from '../../support/fixtures.ts'

/** What access tokens say, and which of them are believed. */

const subject = { userId: newId('user'), organisationId: newId('org'), sessionId: newId('sess'), roles: ['Viewer'] }
let good = ''
beforeAll(async () => {
  await ensureKeys()
  good = await issueAccessToken(subject)
})

const heard = (token: string): Promise<string> => errorCodeOf(verifyAccessToken(token))

test('an access token says whose it is, in which session, with which roles, for fifteen minutes', async () => {
  const [published] = (await publicKeySet()).keys
  const { headerFields, claimFields } = decodeToken(good)
  expect(headerFields).toEqual({ alg: 'EdDSA', typ: 'at+jwt', kid: published?.kid })
  expect(claimFields).toEqual({
    iss: 'platform',
    aud: 'platform-api',
    sub: subject.userId,
    org: subject.organisationId,
    sid: subject.sessionId,
    roles: ['Viewer'],
    jti: expect.stringMatching(/^[\w-]{22}$/),
    iat: expect.any(Number),
    exp: Number(claimFields['iat']) + 900,
  })
  expect(accessTokenSeconds).toBe(900)
  expect(Math.abs(Number(claimFields['iat']) - nowSeconds())).toBeLessThan(60)
  expect(await verifyAccessToken(good)).toEqual({
    kind: 'user',
    userId: subject.userId,
    organisationId: subject.organisationId,
    sessionId: subject.sessionId,
    permissions: new Set(['clusters:read', 'jobs:read', 'modules:read']),
  })
})

test('a module is told for a minute who asks, by a token that is none of access, whatever the module is called', async () => {
  const caller = { ...subject, permissions: new Set(['jobs:read', 'jobs:write'] as const) }
  const token = await issueModuleToken('platform-api', caller)
  const { headerFields, claimFields } = decodeToken(token)
  expect(headerFields).toEqual({ alg: 'EdDSA', typ: 'module+jwt', kid: decodeToken(good).headerFields['kid'] })
  expect(claimFields).toEqual({
    iss: 'platform',
    aud: 'platform-api',
    sub: subject.userId,
    org: subject.organisationId,
    permissions: ['jobs:read', 'jobs:write'],
    jti: expect.stringMatching(/^[\w-]{22}$/),
    iat: expect.any(Number),
    exp: Number(claimFields['iat']) + 60,
  })
  expect(moduleTokenSeconds).toBe(60)
  expect(await heard(token)).toBe('unauthenticated')
})

test.for(['wrongly claimed', 'wrongly signed', 'mangled'] as const)(
  'a token that is %s is refused, whatever is wrong with it',
  async (kind) => {
    const { access } = await platformSigningKeys()
    const made = {
      'wrongly claimed': () => wrongClaims(good, access),
      'wrongly signed': () => wrongSignatures(good, createPublicKey(access)),
      mangled: () => malformedTokens(good),
    }
    const forgeries = Object.entries(made[kind]())
    expect(forgeries.length).toBeGreaterThan(15)
    for (const [name, token] of forgeries) {
      const expected = name === 'valid for ten years' ? 'token_expired' : 'unauthenticated'
      expect([name, await heard(token)]).toEqual([name, expected])
    }
  },
)

/** The good token, but issued and ending so many seconds from now. */
async function timed(issuedSeconds: number, endsSeconds: number): Promise<string> {
  const { headerFields, claimFields } = decodeToken(good)
  const [iat, exp] = [nowSeconds() + issuedSeconds, nowSeconds() + endsSeconds]
  const { access } = await platformSigningKeys()
  return encodeToken(headerFields, { ...claimFields, iat, exp }, signEdDsa(access))
}

test('the log tells why a token was refused, and the caller does not', async () => {
  const { access } = await platformSigningKeys()
  const { 'no subject': forged = '' } = wrongClaims(good, access)
  for (const token of [forged, await timed(-1000, -100)]) {
    const refused = verifyAccessToken(token).catch((error: unknown) => error)
    expect(await refused).toMatchObject({ extra: {}, cause: expect.any(Error) })
  }
})

test('clocks of the platform may differ by a few seconds, and no token is older than fifteen minutes', async () => {
  expect(await heard(await timed(3, 903))).toBe('no error')
  expect(await heard(await timed(-890, 10))).toBe('no error')
  expect(await heard(await timed(-902, -2))).toBe('token_expired')
  expect(await heard(await timed(10, 910))).toBe('unauthenticated')
  expect(await heard(await timed(-907, -7))).toBe('token_expired')
  expect(await heard(await timed(-910, 3600))).toBe('token_expired')
})

test('a token that was verified costs no call, and lives exactly as long as one that was not', async () => {
  const [known, unknown] = [await issueAccessToken(subject), await issueAccessToken(subject)]
  expect(await heard(known)).toBe('no error')
  expect(await countStoreCalls(() => verifyAccessToken(known))).toBe(0)
  // It is not even verified again.
  expect(await verifyAccessToken(known)).toBe(await verifyAccessToken(known))
  shiftClock(890_000)
  expect(await heard(known)).toBe('no error')
  shiftClock(11_000)
  for (const token of [known, unknown, known, unknown]) expect(await heard(token)).toBe('token_expired')
})

test('a process that has just read the keys reads them for no unknown one', async () => {
  shiftClock(301_000)
  const token = await issueAccessToken(subject)
  expect(await countStoreCalls(() => verifyAccessToken(token))).toBe(1)
  const { headerFields, claimFields } = decodeToken(token)
  const { access } = await platformSigningKeys()
  const unknown = () => encodeToken({ ...headerFields, kid: newId('job') }, claimFields, signEdDsa(access))
  expect(await countStoreCalls(() => heard(unknown()))).toBe(0)
  shiftClock(11_000)
  expect(await countStoreCalls(() => heard(unknown()))).toBe(1)
  expect(await countStoreCalls(() => heard(unknown()))).toBe(0)
})

test('a store that is away turns away nobody whose key is known, and says so to others', async () => {
  const token = await issueAccessToken(subject)
  await verifyAccessToken(await issueAccessToken(subject))
  shiftClock(301_000)
  {
    using _ = onStoreCall({
      before: async () => {
        throw new RangeError('out of order')
      },
    })
    expect(await heard(token)).toBe('no error')
    const { headerFields, claimFields } = decodeToken(token)
    const { access } = await platformSigningKeys()
    const unknown = encodeToken({ ...headerFields, kid: 'unknown' }, claimFields, signEdDsa(access))
    await expect(verifyAccessToken(unknown)).rejects.not.toMatchObject({ code: 'unauthenticated' })
  }
})
