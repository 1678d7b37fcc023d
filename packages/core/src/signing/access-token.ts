import { permissionsOf } from '@platform/contract/permission'
import { type CryptoKey, decodeProtectedHeader, errors, importJWK, jwtVerify, SignJWT } from 'jose'
import * as z from 'zod'
import type { Caller } from '../caller.ts'
import { elapsedMs, now, nowSeconds } from '../clock.ts'
import { platformError } from '../error.ts'
import { newSecret } from '../id.ts'
import type { TokenKind } from './private-key.ts'
import { readAccessKeys, keyCacheMs } from './published-keys.ts'
import { BoundedCache } from '../lib/bounded-cache.ts'
import { signerOf } from './keys.ts'

/** Access tokens are signed with EdDSA, valid for fifteen minutes, and verified with cached keys. */

export const accessTokenSeconds = 900

const issuer = 'platform'
const audience = 'platform-api'
const typ = 'at+jwt'
const clockToleranceSeconds = 5

const Claims = z.object({
  sub: z.string(),
  org: z.string(),
  sid: z.string(),
  roles: z.array(z.string()),
  iat: z.number(),
  exp: z.number(),
})

export interface Subject {
  userId: string
  organisationId: string
  sessionId: string
  roles: readonly string[]
}

interface TokenOptions {
  kind: TokenKind
  typ: string
  audience: string
  subject: string
  lifetimeSeconds: number
}

async function sign(claims: Record<string, unknown>, options: TokenOptions): Promise<string> {
  const { kid, key } = await signerOf(options.kind)
  const issuedAt = nowSeconds()
  return new SignJWT(claims)
    .setProtectedHeader({ alg: 'EdDSA', typ: options.typ, kid })
    .setIssuer(issuer)
    .setAudience(options.audience)
    .setSubject(options.subject)
    .setJti(newSecret().slice(0, 22))
    .setIssuedAt(issuedAt)
    .setExpirationTime(issuedAt + options.lifetimeSeconds)
    .sign(key)
}

export const issueAccessToken = ({ userId, organisationId, sessionId, roles }: Subject): Promise<string> =>
  sign(
    { org: organisationId, sid: sessionId, roles },
    { kind: 'access', typ, audience, subject: userId, lifetimeSeconds: accessTokenSeconds },
  )

export const moduleTokenSeconds = 60

/** The audience is the module's id. The key and the type of the token prevent its use as an access token. */
export const issueModuleToken = (
  moduleId: string,
  { userId, organisationId, permissions }: Pick<Caller, 'userId' | 'organisationId' | 'permissions'>,
): Promise<string> =>
  sign(
    { org: organisationId, permissions: [...permissions] },
    { kind: 'module', typ: 'module+jwt', audience: moduleId, subject: userId, lifetimeSeconds: moduleTokenSeconds },
  )

interface VerifiedToken {
  caller: Caller
  issuedAtMs: number
  expiresAtMs: number
}

// The session is checked elsewhere, so a verified token stays valid until it expires or its key is revoked.
const tokenCache = new BoundedCache<VerifiedToken>(5000)

export async function verifyAccessToken(token: string): Promise<Caller> {
  const cachedToken = tokenCache.get(token)
  if (cachedToken !== undefined && cachedToken.expiresAtMs > now() && cachedToken.issuedAtMs <= latestIssueMs()) {
    await publicKeyFor(token)
    return cachedToken.caller
  }
  const verifiedToken = await verify(token)
  // Concurrent requests receive one caller, so that they share the data that is cached for this caller.
  if (tokenCache.get(token)?.expiresAtMs !== verifiedToken.expiresAtMs) tokenCache.set(token, verifiedToken)
  return tokenCache.get(token)?.caller ?? verifiedToken.caller
}

const latestIssueMs = (): number => now() + clockToleranceSeconds * 1000

// The clock has been set back since the token was signed. The caller can refresh the token.
const isFromFuture = (error: unknown): boolean =>
  error instanceof errors.JWTClaimValidationFailed && error.claim === 'iat' && error.reason === 'check_failed'

async function verify(token: string): Promise<VerifiedToken> {
  try {
    const { payload } = await jwtVerify(token, await publicKeyFor(token), {
      algorithms: ['EdDSA'],
      issuer,
      audience,
      typ,
      requiredClaims: ['sub', 'exp', 'iat', 'jti'],
      maxTokenAge: accessTokenSeconds,
      clockTolerance: clockToleranceSeconds,
      currentDate: new Date(now()),
    })
    const { sub, org, sid, roles, iat, exp } = Claims.parse(payload)
    // Limits tokens that were signed with a stolen key. The clock tolerance does not extend the validity.
    const expiresAtMs = Math.min(exp, iat + accessTokenSeconds) * 1000
    if (expiresAtMs <= now()) throw platformError('token_expired')
    const permissions = new Set(permissionsOf(roles))
    const caller: Caller = { kind: 'user', userId: sub, organisationId: org, sessionId: sid, permissions }
    return { caller, issuedAtMs: iat * 1000, expiresAtMs }
  } catch (error) {
    if (error instanceof errors.JWTExpired || isFromFuture(error))
      throw platformError('token_expired', {}, { cause: error })
    if (error instanceof errors.JOSEError || error instanceof z.ZodError || error instanceof TypeError) {
      throw platformError('unauthenticated', {}, { cause: error })
    }
    throw error
  }
}

let publicKeys = new Map<string, CryptoKey>()
let readAtElapsedMs = Number.NEGATIVE_INFINITY
const maxCacheMs = 300_000

async function publicKeyFor(token: string): Promise<CryptoKey> {
  const { kid = '' } = decodeProtectedHeader(token)
  const ageMs = elapsedMs() - readAtElapsedMs
  // Forged key ids must not cause frequent store calls, and known keys must work while the store is unavailable.
  if (ageMs >= maxCacheMs) await refreshPublicKeys().catch(rethrowUnlessKnown(kid))
  else if (!publicKeys.has(kid) && ageMs >= keyCacheMs) await refreshPublicKeys()
  const key = publicKeys.get(kid)
  if (key === undefined) throw platformError('unauthenticated')
  return key
}

const rethrowUnlessKnown = (kid: string) => (error: unknown) => {
  if (!publicKeys.has(kid)) throw error
}

async function refreshPublicKeys(): Promise<void> {
  const keySet = await readAccessKeys()
  const importedKeys = keySet.keys.map(async (jwk) => [jwk.kid, await importJWK(jwk, 'EdDSA')] as const)
  publicKeys = new Map(await Promise.all(importedKeys))
  readAtElapsedMs = elapsedMs()
}
