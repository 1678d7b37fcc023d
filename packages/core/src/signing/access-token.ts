import { permissionsOf } from '@platform/contract/permission'
import { type KeySet } from '@platform/contract/relay'
import { type CryptoKey, decodeProtectedHeader, errors, importJWK, jwtVerify, SignJWT } from 'jose'
import * as z from 'zod'
import { type Caller } from '../caller.ts'
import { now, nowSeconds } from '../clock.ts'
import { platformError } from '../error.ts'
import { newSecret } from '../id.ts'
import { readAccessKeys, keyCacheMs } from './published-keys.ts'
import { BoundedCache } from '../lib/bounded-cache.ts'
import { signer } from './keys.ts'

/** Access tokens: EdDSA, fifteen minutes, verified without a store call by a process with the keys. */

export const accessTokenSeconds = 900

const issuer = 'platform'
const audience = 'platform-api'
const typ = 'at+jwt'
/** Tolerance between the clocks of issuer and verifier. */
const skewSeconds = 5

const Claims = z.object({
  sub: z.string(),
  org: z.string(),
  sid: z.string(),
  roles: z.array(z.string()),
  iat: z.number(),
  exp: z.number(),
})

/** The identity in a token. */
export interface Subject {
  userId: string
  organisationId: string
  sessionId: string
  roles: readonly string[]
}

/** Signs an access token. */
export async function issueAccessToken({ userId, organisationId, sessionId, roles }: Subject): Promise<string> {
  const { kid, key } = await signer('access')
  const issuedAt = nowSeconds()
  return new SignJWT({ org: organisationId, sid: sessionId, roles })
    .setProtectedHeader({ alg: 'EdDSA', typ, kid })
    .setIssuer(issuer)
    .setAudience(audience)
    .setSubject(userId)
    .setJti(newSecret().slice(0, 22))
    .setIssuedAt(issuedAt)
    .setExpirationTime(issuedAt + accessTokenSeconds)
    .sign(key)
}

/** Lifetime of the caller's token for a module. */
export const moduleTokenSeconds = 60

/**
 * Issues a caller token for one module: a minute, with the module's id as audience. Its type prevents use as an access
 * token.
 */
export async function issueModuleToken(
  moduleId: string,
  { userId, organisationId, permissions }: Pick<Caller, 'userId' | 'organisationId' | 'permissions'>,
): Promise<string> {
  const { kid, key } = await signer('access')
  const issuedAt = nowSeconds()
  return new SignJWT({ org: organisationId, permissions: [...permissions] })
    .setProtectedHeader({ alg: 'EdDSA', typ: 'module+jwt', kid })
    .setIssuer(issuer)
    .setAudience(moduleId)
    .setSubject(userId)
    .setJti(newSecret().slice(0, 22))
    .setIssuedAt(issuedAt)
    .setExpirationTime(issuedAt + moduleTokenSeconds)
    .sign(key)
}

interface Verified {
  caller: Caller
  expiresAtMs: number
}

// Access tokens cannot be revoked, so a verified one stays valid until it expires; only its key may be withdrawn.
const verified = new BoundedCache<Verified>(500)

/** The caller of a token. Throws `unauthenticated` or `token_expired`. */
export async function verifyAccessToken(token: string): Promise<Caller> {
  const known = verified.get(token)
  if (known !== undefined && known.expiresAtMs > now()) {
    await keyOf(token)
    return known.caller
  }
  const fresh = await verify(token)
  verified.set(token, fresh)
  return fresh.caller
}

async function verify(token: string): Promise<Verified> {
  try {
    const { payload } = await jwtVerify(token, await keyOf(token), {
      algorithms: ['EdDSA'],
      issuer,
      audience,
      typ,
      requiredClaims: ['sub', 'exp', 'iat', 'jti'],
      maxTokenAge: accessTokenSeconds,
      clockTolerance: skewSeconds,
      currentDate: new Date(now()),
    })
    const { sub, org, sid, roles, iat, exp } = Claims.parse(payload)
    // A stolen key could sign any expiry. The clock tolerance applies to the start of a token, not to its end.
    const expiresAtMs = Math.min(exp, iat + accessTokenSeconds) * 1000
    if (expiresAtMs <= now()) throw platformError('token_expired')
    const permissions = new Set(permissionsOf(roles))
    return { caller: { kind: 'user', userId: sub, organisationId: org, sessionId: sid, permissions }, expiresAtMs }
  } catch (error) {
    if (error instanceof errors.JWTExpired) throw platformError('token_expired', {}, { cause: error })
    if (error instanceof errors.JOSEError || error instanceof z.ZodError || error instanceof TypeError) {
      throw platformError('unauthenticated', {}, { cause: error })
    }
    throw error
  }
}

let publicKeys = new Map<string, CryptoKey>()
let readAtMs = Number.NEGATIVE_INFINITY
/** A withdrawn key is accepted no longer than this. */
const believedMs = 300_000

async function keyOf(token: string): Promise<CryptoKey> {
  const { kid = '' } = decodeProtectedHeader(token)
  const ageMs = now() - readAtMs
  // Forged key ids must not cause store calls, and an unavailable store must not reject known keys.
  if (ageMs >= believedMs) await readPublicKeys().catch(unlessKnown(kid))
  else if (!publicKeys.has(kid) && ageMs >= keyCacheMs) await readPublicKeys()
  const key = publicKeys.get(kid)
  if (key === undefined) throw platformError('unauthenticated')
  return key
}

const unlessKnown = (kid: string) => (error: unknown) => {
  if (!publicKeys.has(kid)) throw error
}

async function readPublicKeys(): Promise<void> {
  const set = await readAccessKeys()
  const imported = set.keys.map(async (jwk) => [jwk.kid, await importJWK(jwk, 'EdDSA')] as const)
  publicKeys = new Map(await Promise.all(imported))
  readAtMs = now()
}

/** The key set of `/.well-known/jwks.json`. One call. */
export const publicKeySet = (): Promise<KeySet> => readAccessKeys()
