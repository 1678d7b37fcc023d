import { GetItemCommand } from '@aws-sdk/client-dynamodb'
import * as keys from '@platform/core/db/keys'
import { createPublicKey, type KeyObject, verify } from 'node:crypto'
import { keyOf, store, TableName, textOf } from './store.ts'

/** Verifies an access token at each request, by hand. */

/** What an access token says. */
export interface Claims {
  iss: string
  aud: string
  sub: string
  org: string
  roles: string[]
  exp: number
}

const known = new Map<string, KeyObject>()

/** The claims of the bearer token, or undefined if it is not one of ours. */
export async function claimsOf(authorization = ''): Promise<Claims | undefined> {
  const [header = '', payload = '', signature = ''] = authorization.slice('Bearer '.length).split('.')
  const { kid, alg, typ } = decode(header)
  if (alg !== 'EdDSA' || typ !== 'at+jwt') return undefined
  const key = known.get(kid) ?? (await readKey(kid))
  const isGenuine = verify(null, Buffer.from(`${header}.${payload}`), key, Buffer.from(signature, 'base64url'))
  const claims: Claims = decode(payload)
  const isOurs = claims.iss === 'platform' && claims.aud === 'platform-api' && claims.exp * 1000 > Date.now()
  return isGenuine && isOurs && claims.roles.some((role) => role.endsWith('Admin')) ? claims : undefined
}

export const decode = (part: string) => JSON.parse(Buffer.from(part, 'base64url').toString())

async function readKey(kid: string): Promise<KeyObject> {
  const request = { TableName, Key: keyOf(keys.accessKeys()), ConsistentRead: true }
  const { Item = {} } = await store.send(new GetItemCommand(request))
  const key = publicKey(textOf(Item[`key:${kid}`]?.M ?? {}, 'x'))
  known.set(kid, key)
  return key
}

export const publicKey = (x: string): KeyObject =>
  createPublicKey({ format: 'jwk', key: { kty: 'OKP', crv: 'Ed25519', x } })
