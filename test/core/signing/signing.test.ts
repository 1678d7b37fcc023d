import { execFile } from 'node:child_process'
import { createPublicKey } from 'node:crypto'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import {
  CreateSecretCommand,
  DeleteSecretCommand,
  GetSecretValueCommand,
  SecretsManagerClient,
} from '@aws-sdk/client-secrets-manager'
import * as Session from '@platform/core/accounts/session'
import { readSecret } from '@platform/core/aws/secrets'
import { now, nowSeconds, shiftClock } from '@platform/core/clock'
import { config } from '@platform/core/config'
import * as keys from '@platform/core/db/keys'
import { get } from '@platform/core/db/table'
import { newId } from '@platform/core/id'
import { complete } from '@platform/core/platform/setup'
import * as AccessToken from '@platform/core/signing/access-token'
import { issueAccessToken, verifyAccessToken } from '@platform/core/signing/access-token'
import { ensureKeys, signerOf } from '@platform/core/signing/keys'
import { readAccessKeys, readPublicKeys } from '@platform/core/signing/published-keys'
import { decodeJwt, SignJWT } from 'jose'
import { beforeEach, describe, expect, test } from 'vitest'
import { handler as bootstrap } from '../../../functions/bootstrap.ts'
import { administrator, adminToken, bootstrapPlatform, errorCodeOf, expectError } from '../../support/fixtures.ts'
import * as forged from '../../support/forged-tokens.ts'
import { countStoreCalls } from '../../support/store-calls.ts'
import { failCommands } from '../support/interleaving.ts'

const subject = { userId: newId('user'), organisationId: newId('org'), sessionId: newId('sess'), roles: ['Viewer'] }
const newToken = () => issueAccessToken(subject)
const verify = (token: string): Promise<string> => errorCodeOf(verifyAccessToken(token))
const expectValid = async (...tokens: string[]) => {
  for (const token of tokens) expect(await verify(token)).toBe('no error')
}
const kidOf = (token: string) => forged.decodeToken(token).headerFields['kid']
const readCurrentKid = async (): Promise<string> =>
  JSON.parse((await readSecret(`${config.PLAT_SECRET_KEYS_PREFIX}/access-keys`)) ?? '')[0].kid
const readPublishedKids = async () => (await readAccessKeys()).keys.map(({ kid }) => kid)

const minuteMs = 60_000
/** Advances the clock until a new key signs. */
const activateKey = () => shiftClock(11_000)

beforeEach(async () => {
  await ensureKeys()
  activateKey()
})

describe('an access token', () => {
  const signTimed = async (validToken: string, issuedSeconds: number, expirySeconds: number): Promise<string> => {
    const { headerFields, claimFields } = forged.decodeToken(validToken)
    const [iat, exp] = [nowSeconds() + issuedSeconds, nowSeconds() + expirySeconds]
    const { access } = await forged.platformSigningKeys()
    return forged.encodeToken(headerFields, { ...claimFields, iat, exp }, forged.signEdDsa(access))
  }

  const withKid = async (token: string, kid: string): Promise<string> => {
    const { headerFields, claimFields } = forged.decodeToken(token)
    const { access } = await forged.platformSigningKeys()
    return forged.encodeToken({ ...headerFields, kid }, claimFields, forged.signEdDsa(access))
  }

  test('contains user, organisation, session and roles, and is valid for fifteen minutes', async () => {
    const token = await newToken()
    const { headerFields, claimFields } = forged.decodeToken(token)
    expect(headerFields).toEqual({ alg: 'EdDSA', typ: 'at+jwt', kid: await readCurrentKid() })
    expect((await readAccessKeys()).keys.map(({ kid }) => kid)).toContain(headerFields['kid'])
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
    expect(AccessToken.accessTokenSeconds).toBe(900)
    expect(Math.abs(Number(claimFields['iat']) - nowSeconds())).toBeLessThan(60)
    expect(await verifyAccessToken(token)).toEqual({
      kind: 'user',
      userId: subject.userId,
      organisationId: subject.organisationId,
      sessionId: subject.sessionId,
      permissions: new Set(['clusters:read', 'jobs:read', 'modules:read']),
    })
  })

  test('for a module has its own key, is valid for a minute and not accepted by the platform', async () => {
    const caller = { ...subject, permissions: new Set(['jobs:read', 'jobs:write'] as const) }
    const token = await AccessToken.issueModuleToken('platform-api', caller)
    const { headerFields, claimFields } = forged.decodeToken(token)
    const { kid, key } = await signerOf('module')
    expect(headerFields).toEqual({ alg: 'EdDSA', typ: 'module+jwt', kid })
    expect((await readPublicKeys()).keys.map((each) => each.kid)).toContain(kid)
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
    expect(AccessToken.moduleTokenSeconds).toBe(60)
    expect(await verify(token)).toBe('unauthenticated')
    const accessClaims = new SignJWT(decodeJwt(await newToken()))
    const forgedToken = await accessClaims.setProtectedHeader({ alg: 'EdDSA', typ: 'at+jwt', kid }).sign(key)
    expect(await verify(forgedToken)).toBe('unauthenticated')
  })

  test.each(['wrongClaims', 'wrongSignatures', 'malformedTokens'] as const)('is rejected with %s', async (kind) => {
    const validToken = await newToken()
    const { access } = await forged.platformSigningKeys()
    const forgeries = Object.entries(
      {
        wrongClaims: () => forged.wrongClaims(validToken, access),
        wrongSignatures: () => forged.wrongSignatures(validToken, createPublicKey(access)),
        malformedTokens: () => forged.malformedTokens(validToken),
      }[kind](),
    )
    expect(forgeries.length).toBeGreaterThan(15)
    for (const [name, token] of forgeries) {
      const code = /^(valid for ten years|issued in .*)$/.test(name) ? 'token_expired' : 'unauthenticated'
      expect([name, await verify(token)]).toEqual([name, code])
    }
  })

  test('is rejected without details for the caller, but with a cause for the log', async () => {
    const validToken = await newToken()
    const { access } = await forged.platformSigningKeys()
    const { 'no subject': withoutSubject = '' } = forged.wrongClaims(validToken, access)
    for (const token of [withoutSubject, await signTimed(validToken, -1000, -100)]) {
      const error = await verifyAccessToken(token).catch((cause: unknown) => cause)
      expect(error).toMatchObject({ extra: {}, cause: expect.any(Error) })
    }
  })

  test.each([
    [3, 903, 'no error'],
    [-890, 10, 'no error'],
    [-902, -2, 'token_expired'],
    [10, 910, 'token_expired'],
    [-907, -7, 'token_expired'],
    [-910, 3600, 'token_expired'],
  ])('issued at %i s that expires at %i s: %s', async (issuedSeconds, expirySeconds, code) => {
    expect(await verify(await signTimed(await newToken(), issuedSeconds, expirySeconds))).toBe(code)
  })

  test('is verified without a store call when cached, until it expires', async () => {
    const [cachedToken, uncachedToken] = [await newToken(), await newToken()]
    await expectValid(cachedToken)
    expect(await countStoreCalls(() => verifyAccessToken(cachedToken))).toBe(0)
    expect(await verifyAccessToken(cachedToken)).toBe(await verifyAccessToken(cachedToken))
    shiftClock(890_000)
    await expectValid(cachedToken)
    shiftClock(11_000)
    for (const token of [cachedToken, uncachedToken, cachedToken, uncachedToken])
      expect(await verify(token)).toBe('token_expired')
  })

  test('with an unknown key causes at most one store call in five seconds', async () => {
    shiftClock(301_000)
    const token = await newToken()
    expect(await countStoreCalls(() => verifyAccessToken(token))).toBe(1)
    const verifyUnknownKey = async () => verify(await withKid(token, newId('job')))
    expect(await countStoreCalls(verifyUnknownKey)).toBe(0)
    shiftClock(11_000)
    expect(await countStoreCalls(verifyUnknownKey)).toBe(1)
    expect(await countStoreCalls(verifyUnknownKey)).toBe(0)
  })

  test('with a known key is accepted while the store is unavailable', async () => {
    const token = await newToken()
    await expectValid(await newToken())
    shiftClock(301_000)
    const unknownKeyToken = await withKid(token, 'unknown')
    using _ = failCommands()
    await expectValid(token)
    await expect(verifyAccessToken(unknownKeyToken)).rejects.not.toMatchObject({ code: 'unauthenticated' })
  })

  test('signed with a stolen key is valid for fifteen minutes, regardless of its expiry', async () => {
    const { kid, key } = await signerOf('access')
    const token = await new SignJWT(decodeJwt(await newToken()))
      .setProtectedHeader({ alg: 'EdDSA', typ: 'at+jwt', kid })
      .setIssuedAt(nowSeconds())
      .setExpirationTime(nowSeconds() + 365 * 24 * 3600)
      .sign(key)
    await expectValid(token)
    shiftClock(14 * minuteMs)
    await expectValid(token)
    shiftClock(2 * minuteMs)
    await expectError(verifyAccessToken(token), 'token_expired')
  })
})

describe('a key rotation', () => {
  const script = fileURLToPath(new URL('../support/rotate-keys.ts', import.meta.url))

  async function rotateUntilKilled(failpoint: string): Promise<void> {
    const env = { ...process.env, PLAT_FAILPOINT: `${failpoint}=kill` }
    const rotation = promisify(execFile)(process.execPath, [script, String(now() - Date.now())], { env })
    await expect(rotation).rejects.toMatchObject({ signal: 'SIGKILL' })
  }

  test('signs new tokens with the new key; old tokens are valid until they expire', async () => {
    const tokenBefore = await newToken()
    await bootstrap({ rotate: 'access' })
    activateKey()
    const tokenAfter = await newToken()
    expect(kidOf(tokenAfter)).toBe(await readCurrentKid())
    expect(kidOf(tokenAfter)).not.toBe(kidOf(tokenBefore))
    await expectValid(tokenBefore, tokenAfter)
    shiftClock(14 * minuteMs)
    await expectValid(tokenBefore)
    shiftClock(2 * minuteMs)
    await expectError(verifyAccessToken(tokenBefore), 'token_expired')
  })

  test('never signs with a key that verifiers may not have read', async () => {
    for (let second = 0; second < 30; second++) {
      if (second === 3 || second === 6) await ensureKeys({ rotate: true })
      expect(await verify(await newToken()), `after ${second} seconds`).toBe('no error')
      shiftClock(1000)
    }
  })

  test('leaves one signing key after concurrent rotations', async () => {
    const tokenBefore = await newToken()
    await Promise.all([ensureKeys({ rotate: true }), ensureKeys({ rotate: true }), ensureKeys(), ensureKeys()])
    activateKey()
    const tokenAfter = await newToken()
    expect(kidOf(tokenAfter)).toBe(await readCurrentKid())
    await expectValid(tokenBefore, tokenAfter)
  })

  test('keeps replaced keys published until their tokens have expired', async () => {
    const firstKid = kidOf(await newToken())
    await ensureKeys({ rotate: true })
    await ensureKeys({ rotate: true })
    shiftClock(20 * minuteMs)
    await ensureKeys()
    expect(await readPublishedKids()).toContain(firstKid)
    shiftClock(45 * minuteMs)
    await ensureKeys()
    expect(await readPublishedKids()).toEqual([await readCurrentKid()])
  })

  test('keeps tokens valid when it is repeated after a minute, also after thirty days', async () => {
    shiftClock(29 * 24 * 60 * minuteMs)
    const tokenBefore = await newToken()
    for (let rotation = 0; rotation < 2; rotation++) {
      shiftClock(minuteMs)
      await ensureKeys({ rotate: true })
    }
    activateKey()
    await expectValid(tokenBefore)
    shiftClock(31 * 24 * 60 * minuteMs)
    await ensureKeys()
    expect(await readPublishedKids()).toContain(await readCurrentKid())
    activateKey()
    await expectValid(await newToken())
  })

  test.each([false, true])('with a revocation invalidates the tokens of the old key (cached: %s)', async (isCached) => {
    const stolenToken = await newToken()
    if (isCached) await expectValid(stolenToken)
    await bootstrap({ rotate: 'access', withdraw: true })
    expect(await readPublishedKids()).toEqual([await readCurrentKid()])
    shiftClock(6 * minuteMs)
    await expectError(verifyAccessToken(stolenToken), 'unauthenticated')
    await expectValid(await newToken())
  })

  test('does not increment the start counter, and rejects invalid requests', async () => {
    const countStarts = async () => (await get(keys.platform()))?.['starts']
    const countBefore = await countStarts()
    await bootstrap({ rotate: 'access' })
    const kid = await readCurrentKid()
    expect(() => bootstrap({ rotate: 'statement' })).toThrow('Invalid option')
    expect(() => bootstrap({ rotate: 'access', withdrawn: true })).toThrow('Unrecognized key')
    expect([await countStarts(), await readCurrentKid()]).toEqual([countBefore, kid])
  })

  test.each(['keys.published', 'keys.written'])(
    'killed at %s breaks no token, and can be repeated',
    async (failpoint) => {
      const tokenBefore = await newToken()
      await rotateUntilKilled(failpoint)
      await expectValid(tokenBefore, await newToken())
      activateKey()
      await expectValid(await newToken())
      // The key of the incomplete rotation must not be removed while it signs.
      shiftClock(3 * 60 * minuteMs)
      await ensureKeys({ rotate: true })
      await expectValid(await newToken())
      activateKey()
      const lastToken = await newToken()
      expect(kidOf(lastToken)).toBe(await readCurrentKid())
      await expectValid(lastToken)
    },
  )
})

test('setup, sign-in and refresh change nothing while the signing keys are unavailable', async () => {
  const client = new SecretsManagerClient()
  const SecretId = `${config.PLAT_SECRET_KEYS_PREFIX}/access-keys`
  const withoutKeys = async (work: () => Promise<unknown>) => {
    const { SecretString } = await client.send(new GetSecretValueCommand({ SecretId }))
    await client.send(new DeleteSecretCommand({ SecretId, ForceDeleteWithoutRecovery: true }))
    // Longer than keys are cached.
    shiftClock(301_000)
    try {
      await expectError(work(), 'starting')
    } finally {
      await client.send(new CreateSecretCommand({ Name: SecretId, SecretString }))
    }
  }
  const origin = { address: '192.0.2.1' }
  const credentials = { username: 'admin', password: administrator.adminPassword }
  await bootstrapPlatform()
  const request = { ...administrator, initialAdminToken: await adminToken() }
  await withoutKeys(() => complete(request))
  expect(await complete(request)).toMatchObject({ tokenType: 'Bearer' })
  const tokens = await Session.signIn(credentials, origin)
  await withoutKeys(() => Session.refresh(tokens))
  const refreshedTokens = await Session.refresh(tokens)
  const countSessions = async () =>
    (await Session.list(await verifyAccessToken(refreshedTokens.accessToken))).items.length
  const countBefore = await countSessions()
  await withoutKeys(() => Session.signIn(credentials, origin))
  expect(await countSessions()).toBe(countBefore)
})
