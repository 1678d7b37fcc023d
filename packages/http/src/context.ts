import type { Access } from '@platform/contract/endpoint'
import type { Context } from 'hono'
import type { GatewayEvent } from './request.ts'

export interface HttpEnv {
  Bindings: {
    event: GatewayEvent
    /** Headers to add to the response. Headers that the handler sets take precedence. */
    headers: Record<string, string>
    /** Whether the request bypassed the front that the operator requires. */
    isFrontBypassed: boolean
  }
  Variables: { access?: Access }
}

export type HttpContext = Context<HttpEnv>
