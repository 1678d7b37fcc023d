import type { GatewayEvent } from '@platform/http/request'
import type { GatewayHandler } from '@platform/http/response'
import { handler as platform } from '../../../../functions/clusters.ts'
import { handler as floor } from '../../floor/get-cluster.ts'
import { peerModule, peerNames } from '../../support/peers.ts'

/** Names the side that a request is for; without it the platform answers. */
const sideHeader = 'x-bench-side'

const handlers: Record<string, GatewayHandler> = {
  floor: async (event) => ({ ...(await floor(event)), isBase64Encoded: false }),
}
for (const name of peerNames) {
  handlers[name] = (await import(new URL(`../../../../${peerModule(name)}`, import.meta.url).href)).handler
}

/** Platform, floor and peers on the same thread behind the same gateway: what differs is the handler. */
export const handler: GatewayHandler = (event: GatewayEvent) =>
  (handlers[event.headers[sideHeader] ?? ''] ?? platform)(event)
