import type { GatewayHandler } from '@platform/http/response'
import type { TestResponse, TestRequest } from '../../support/request.ts'

/** Sends the request of one operation. */
export type Perform = (operation: string, handler: GatewayHandler, sent: TestRequest) => Promise<TestResponse>
/** Does what no HTTP request asks for. */
export type Work = (operation: string, work: () => Promise<unknown>) => Promise<void>
