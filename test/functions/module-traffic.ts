import { type ServerResponse } from 'node:http'
import { shiftClock } from '@platform/core/clock'
import { handler } from '../../functions/gateway/modules.ts'
import { type Received, send, type Sent } from '../support/event.ts'
import { bearer } from '../support/tokens.ts'
import { started } from '../support/world.ts'

/** Requests to modules by way of their gateway, for several suites. */

await started()
/** The header of a signed-in user. */
export const ada = await bearer(['Operator'])

export const get = (target: string, headers: Record<string, string> = ada): Promise<Received> =>
  send(handler, { target, headers })
export const ask = (sent: Sent): Promise<Received> => send(handler, { ...sent, headers: { ...ada, ...sent.headers } })

/** Everybody hears of what has changed. */
export const aSecondLater = (): void => shiftClock(1000)

/** How an instance answers. */
export const answering =
  (headers: Record<string, string | string[]>, body: string | Uint8Array = 'x', status = 200) =>
  (_: unknown, response: ServerResponse): void =>
    void response.writeHead(status, headers).end(body)
