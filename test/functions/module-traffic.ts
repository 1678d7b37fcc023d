import { type ServerResponse } from 'node:http'
import { shiftClock } from '@platform/core/clock'
import { handler } from '../../functions/gateway/modules.ts'
import { type TestResponse, send, type TestRequest } from '../support/request.ts'
import { bearer, bootstrapPlatform } from '../support/fixtures.ts'

/** Requests to modules by way of their gateway, for several suites. */

await bootstrapPlatform()
/** The header of a signed-in user. */
export const ada = await bearer(['Operator'])

export const get = (target: string, headers: Record<string, string> = ada): Promise<TestResponse> =>
  send(handler, { target, headers })
export const ask = (sent: TestRequest): Promise<TestResponse> =>
  send(handler, { ...sent, headers: { ...ada, ...sent.headers } })

/** Everybody hears of what has changed. */
export const aSecondLater = (): void => shiftClock(1000)

/** How an instance answers. */
export const answering =
  (headers: Record<string, string | string[]>, body: string | Uint8Array = 'x', status = 200) =>
  (_: unknown, response: ServerResponse): void =>
    void response.writeHead(status, headers).end(body)
