import { GetItemCommand } from '@aws-sdk/client-dynamodb'
import * as keys from '@platform/core/db/keys'
import { createPublicKey, type KeyObject, verify } from 'node:crypto'
import { keyOf, store, TableName, stringOf } from './store.ts'

export interface Claims {
  iss: string
  aud: string
  sub: string
  sid: string
  org: string
  roles: string[]
  exp: number
}

const publicKeys = new Map<string, KeyObject>()

/**
 * Verifies an access token without caching the result. Returns its claims if the token is valid and a role ends in
 * `Admin`.
 */
export async function verifyToken(authorization = ''): Promise<Claims | undefined> {
  const [header = '', payload = '', signature = ''] = authorization.slice('Bearer '.length).split('.')
  const { kid, alg, typ } = decode(header)
  if (alg !== 'EdDSA' || typ !== 'at+jwt') return undefined
  const key = publicKeys.get(kid) ?? (await readKey(kid))
  const isGenuine = verify(null, Buffer.from(`${header}.${payload}`), key, Buffer.from(signature, 'base64url'))
  const claims: Claims = decode(payload)
  const isValid = claims.iss === 'platform' && claims.aud === 'platform-api' && claims.exp * 1000 > Date.now()
  return isGenuine && isValid && claims.roles.some((role) => role.endsWith('Admin')) ? claims : undefined
}

const decode = (part: string) => JSON.parse(Buffer.from(part, 'base64url').toString())

async function readKey(kid: string): Promise<KeyObject> {
  const request = { TableName, Key: keyOf(keys.tokenKeys('access')), ConsistentRead: true }
  const { Item = {} } = await store.send(new GetItemCommand(request))
  const x = stringOf(Item[`key:${kid}`]?.M ?? {}, 'x')
  const key = createPublicKey({ format: 'jwk', key: { kty: 'OKP', crv: 'Ed25519', x } })
  publicKeys.set(kid, key)
  return key
}
