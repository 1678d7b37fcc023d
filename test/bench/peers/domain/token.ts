import { GetCommand } from '@aws-sdk/lib-dynamodb'
import * as keys from '@platform/core/db/keys'
import { type CryptoKey, decodeProtectedHeader, importJWK, jwtVerify } from 'jose'
import * as z from 'zod'
import { store, TableName } from './store.ts'

/** Access tokens, verified with jose at each request. */

const Claims = z.object({ sub: z.string(), org: z.string(), roles: z.array(z.string()) })

/** What an access token says. */
export type Claims = z.infer<typeof Claims>

const known = new Map<string, CryptoKey>()

/** The claims of the bearer token of somebody who may administrate; undefined for anybody else's. */
export async function claimsOf(authorization = ''): Promise<Claims | undefined> {
  const token = authorization.replace(/^Bearer /, '')
  try {
    const expected = { algorithms: ['EdDSA'], typ: 'at+jwt', issuer: 'platform', audience: 'platform-api' }
    const { payload } = await jwtVerify(token, await keyOf(token), expected)
    const claims = Claims.parse(payload)
    return claims.roles.some((role) => role.endsWith('Admin')) ? claims : undefined
  } catch {
    return undefined
  }
}

async function keyOf(token: string): Promise<CryptoKey> {
  const { kid = '' } = decodeProtectedHeader(token)
  const key = known.get(kid) ?? (await readKey(kid))
  known.set(kid, key)
  return key
}

async function readKey(kid: string): Promise<CryptoKey> {
  const { Item } = await store.send(new GetCommand({ TableName, Key: keys.accessKeys(), ConsistentRead: true }))
  const { x } = Item?.[`key:${kid}`] ?? {}
  const key = await importJWK({ kty: 'OKP', crv: 'Ed25519', x: String(x) }, 'EdDSA')
  if (key instanceof Uint8Array) throw new Error('Ed25519 keys are no bytes.')
  return key
}
