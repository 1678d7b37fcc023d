import type { GatewayHandler } from '@platform/http/event'
import type { Received, Sent } from '../../test/support/event.ts'

/** Sends the request of one operation. */
export type Perform = (operation: string, handler: GatewayHandler, sent: Sent) => Promise<Received>
/** Does what no HTTP request asks for. */
export type Work = (operation: string, work: () => Promise<unknown>) => Promise<void>
