import type { Access } from '@platform/contract/endpoint'
import type { Context } from 'hono'
import type { GatewayEvent } from './request.ts'

/** The types of the values that Hono passes through one request. */
export interface HttpEnv {
  Bindings: {
    event: GatewayEvent
    /** Headers of every response. Headers of the response itself take precedence. */
    headers: Record<string, string>
    /** Whether the request did not come from the front that the operator requires. */
    isPastFront: boolean
  }
  Variables: { access?: Access }
}

export type HttpContext = Context<HttpEnv>
