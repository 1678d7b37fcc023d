import { createHash, type KeyObject, randomUUID, sign } from 'node:crypto'
import { nowSeconds } from '@platform/core/clock'
import { posting, type Sent } from '../../test/support/event.ts'

/** An enrolled relay as the bench plays it. */
export interface BenchRelay {
  relayId: string
  privateKey: KeyObject
  nodeIds: string[]
}

const encode = (value: object): string => Buffer.from(JSON.stringify(value)).toString('base64url')

/** A request that a relay signs (D21). */
export function signed({ relayId, privateKey }: BenchRelay, target: string, body: object): Sent {
  const text = JSON.stringify(body)
  const iat = nowSeconds()
  const bodySha256 = createHash('sha256').update(text).digest('base64url')
  const claims = { aud: 'platform-relay', iat, exp: iat + 60, jti: randomUUID(), path: target, bodySha256 }
  const content = `${encode({ alg: 'EdDSA', typ: 'relay+jwt', kid: relayId })}.${encode(claims)}`
  const signature = sign(null, Buffer.from(content), privateKey).toString('base64url')
  return posting(target, text, { Authorization: `Relay ${content}.${signature}` })
}

/** A beat of a relay whose nodes are well and that runs nothing. */
export const beat = (relay: BenchRelay): Sent =>
  signed(relay, '/api/v1/relay/heartbeat', {
    nodes: relay.nodeIds.map((id) => ({ id, status: 'Online' })),
    running: [],
    freeSlots: 4,
  })
