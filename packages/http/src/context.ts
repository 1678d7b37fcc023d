import type { Access } from '@platform/contract/endpoint'
import type { Context } from 'hono'
import type { GatewayEvent } from './event.ts'

/** What Hono carries through one request. */
export interface HttpEnv {
  Bindings: { event: GatewayEvent }
  Variables: { access?: Access }
}

export type HttpContext = Context<HttpEnv>
