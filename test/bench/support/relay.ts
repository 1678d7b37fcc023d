import type { KeyObject } from 'node:crypto'
import { jsonRequest, type TestRequest } from '../../support/request.ts'
import { relayToken } from '../../support/fixtures.ts'

/** An enrolled relay as the bench plays it. */
export interface BenchRelay {
  relayId: string
  privateKey: KeyObject
  nodeIds: string[]
}

/** A request that a relay signs (D21). */
export async function signed({ relayId, privateKey }: BenchRelay, target: string, body: object): Promise<TestRequest> {
  const text = JSON.stringify(body)
  return jsonRequest(target, text, await relayToken(relayId, privateKey, target, text))
}

/** A beat of a relay whose nodes are well and that runs nothing. */
export const beat = (relay: BenchRelay): Promise<TestRequest> =>
  signed(relay, '/api/v1/relay/heartbeat', {
    nodes: relay.nodeIds.map((id) => ({ id, status: 'Online' })),
    running: [],
    freeSlots: 4,
  })
