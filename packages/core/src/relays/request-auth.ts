import { createHash, createPublicKey, type KeyObject, timingSafeEqual } from 'node:crypto'
import { decodeProtectedHeader, errors, jwtVerify } from 'jose'
import * as z from 'zod'
import type { RelayCaller } from '../caller.ts'
import { now } from '../clock.ts'
import * as keys from '../db/keys.ts'
import { get } from '../db/table.ts'
import { platformError } from '../error.ts'
import { isId } from '../id.ts'
import { BoundedCache } from '../lib/bounded-cache.ts'

/**
 * Every request of an enrolled relay has a new EdDSA token, which is bound to path and body and signed by the enrolled
 * key.
 */

export const relayAudience = 'platform-relay'
const lifetimeSeconds = 60
const maxSkewSeconds = 60

const RelayRecord = z.object({ organisationId: z.string(), clusterId: z.string(), publicKey: z.string() })
const Claims = z.object({
  iat: z.number(),
  exp: z.number(),
  jti: z.string().min(8).max(64),
  path: z.string(),
  bodySha256: z.string().optional(),
})

interface Identity {
  key: KeyObject
  organisationId: string
  clusterId: string
}

// A relay's key and cluster never change. Use cases check that the relay is still the current one of its cluster.
const identities = new BoundedCache<Identity>(10_000)

async function identityOf(relayId: string, isFresh: boolean): Promise<Identity | undefined> {
  if (!isId('relay', relayId)) return undefined
  const cachedIdentity = isFresh ? undefined : identities.get(relayId)
  if (cachedIdentity !== undefined) return cachedIdentity
  const staleItem = isFresh ? undefined : await get(keys.relay(relayId), { mayBeStale: true })
  const item = staleItem ?? (await get(keys.relay(relayId)))
  if (item === undefined) return undefined
  const { publicKey, organisationId, clusterId } = RelayRecord.parse(item)
  const key = createPublicKey({ format: 'jwk', key: { kty: 'OKP', crv: 'Ed25519', x: publicKey } })
  const identity = { key, organisationId, clusterId }
  identities.set(relayId, identity)
  return identity
}

/**
 * If `body` is undefined, because it is not read yet or the request has none, its hash is not verified. `isFresh`
 * bypasses the cache, so that a revoked relay is rejected. It is for callers that do not read the relay's cluster.
 */
export async function authenticateRelay(
  token: string,
  path: string,
  body: Uint8Array | undefined,
  { isFresh = false } = {},
): Promise<RelayCaller> {
  try {
    const { kid } = decodeProtectedHeader(token)
    const identity = await identityOf(String(kid), isFresh)
    if (identity === undefined) throw platformError(isId('relay', String(kid)) ? 'relay_revoked' : 'unauthenticated')
    const { payload } = await jwtVerify(token, identity.key, {
      algorithms: ['EdDSA'],
      audience: relayAudience,
      requiredClaims: ['iat', 'exp', 'jti'],
      maxTokenAge: lifetimeSeconds + maxSkewSeconds,
      clockTolerance: maxSkewSeconds,
      currentDate: new Date(now()),
    })
    const { iat, exp, jti, bodySha256, path: signedPath } = Claims.parse(payload)
    const isOtherBody = body !== undefined && (bodySha256 === undefined || !isHashOf(bodySha256, body))
    if (exp - iat > lifetimeSeconds || signedPath !== path || isOtherBody) throw platformError('unauthenticated')
    const { organisationId, clusterId } = identity
    return { kind: 'relay', relayId: String(kid), organisationId, clusterId, tokenId: jti, issuedAtMs: iat * 1000 }
  } catch (error) {
    if (error instanceof errors.JOSEError || error instanceof z.ZodError || error instanceof TypeError) {
      throw platformError('unauthenticated', {}, { cause: error })
    }
    throw error
  }
}

function isHashOf(hash: string, body: Uint8Array): boolean {
  const actual = createHash('sha256').update(body).digest()
  const expectedHash = Buffer.from(hash, 'base64url')
  return expectedHash.length === actual.length && timingSafeEqual(expectedHash, actual)
}
