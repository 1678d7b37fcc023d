import { GetItemCommand } from '@aws-sdk/client-dynamodb'
import * as keys from '@platform/core/db/keys'
import { createHash, type KeyObject, verify } from 'node:crypto'
import { decode, publicKey } from './access-token.ts'
import { keyOf, store, TableName, textOf } from './store.ts'

/** Verifies a relay's signed request, by hand. */

export interface FloorRelay {
  relayId: string
  organisationId: string
  clusterId: string
  tokenId: string
  issuedAtMs: number
}

interface Identity {
  key: KeyObject
  organisationId: string
  clusterId: string
}

const known = new Map<string, Identity>()

/** The relay that signed a request to this path with this body, or undefined. */
export async function relayOf(authorization = '', path: string, body: string): Promise<FloorRelay | undefined> {
  const [header = '', payload = '', signature = ''] = authorization.slice('Relay '.length).split('.')
  const { kid, alg } = decode(header)
  if (alg !== 'EdDSA') return undefined
  const { key, organisationId, clusterId } = known.get(kid) ?? (await readIdentity(kid))
  const isGenuine = verify(null, Buffer.from(`${header}.${payload}`), key, Buffer.from(signature, 'base64url'))
  const { aud, iat, exp, jti, path: signedPath, bodySha256 } = decode(payload)
  const isOfBody = createHash('sha256').update(body).digest('base64url') === bodySha256
  const isTimely = exp - iat <= 60 && Math.abs(Date.now() / 1000 - iat) < 120
  if (!isGenuine || !isOfBody || !isTimely || signedPath !== path || aud !== 'platform-relay') return undefined
  return { relayId: kid, organisationId, clusterId, tokenId: jti, issuedAtMs: iat * 1000 }
}

async function readIdentity(relayId: string): Promise<Identity> {
  const request = { TableName, Key: keyOf(keys.relay(relayId)), ConsistentRead: true }
  const { Item = {} } = await store.send(new GetItemCommand(request))
  const key = publicKey(textOf(Item, 'publicKey'))
  const identity = { key, organisationId: textOf(Item, 'organisationId'), clusterId: textOf(Item, 'clusterId') }
  known.set(relayId, identity)
  return identity
}
