import type { GatewayEvent } from '@platform/http/event'
import { handler as platform } from '../../../functions/clusters.ts'
import { handler as floor } from '../../floor/get-cluster.ts'

/** Names the side that a request is for; without it the platform answers. */
const sideHeader = 'x-bench-side'

/** Platform and floor on the same thread behind the same gateway: what differs is the handler. */
export const handler = (event: GatewayEvent) => (event.headers[sideHeader] === 'floor' ? floor(event) : platform(event))
