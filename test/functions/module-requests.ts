import type { ServerResponse } from 'node:http'
import { shiftClock } from '@platform/core/clock'
import { handler } from '../../functions/gateway/modules.ts'
import { bearer, bootstrapPlatform } from '../support/fixtures.ts'
import { type TestRequest, type TestResponse, send } from '../support/request.ts'

await bootstrapPlatform()
export const operator = await bearer(['Operator'])

export const get = (target: string, headers: Record<string, string> = operator): Promise<TestResponse> =>
  send(handler, { target, headers })
export const request = (sent: TestRequest): Promise<TestResponse> =>
  send(handler, { ...sent, headers: { ...operator, ...sent.headers } })

/** Advances the clock by the time for which gateways cache routes. */
export const passCacheTime = (): void => shiftClock(1000)

export const respond =
  (headers: Record<string, string | string[]>, body: string | Uint8Array = 'x', status = 200) =>
  (_: unknown, response: ServerResponse): void =>
    void response.writeHead(status, headers).end(body)
