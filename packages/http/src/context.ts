import type { Access } from '@platform/contract/endpoint'
import type { Context } from 'hono'
import type { GatewayEvent } from './event.ts'

/** What Hono carries through one request. */
export interface HttpEnv {
  Bindings: {
    event: GatewayEvent
    /** Headers of the answer, whatever it will be; its own come before them. */
    headers: Record<string, string>
  }
  Variables: { access?: Access }
}

export type HttpContext = Context<HttpEnv>
