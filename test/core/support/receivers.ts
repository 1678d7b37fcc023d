import type { IncomingMessage, ServerResponse } from 'node:http'
import { afterAll } from 'vitest'
import { type TestServer, startServer } from '../../support/http-server.ts'

/** Webhook receivers on loopback. Import this file before core: core reads the allowed addresses when it is imported. */

export interface ReceivedRequest {
  headers: IncomingMessage['headers']
  body: string
}

type Respond = (request: IncomingMessage, response: ServerResponse) => unknown

export class Receiver {
  readonly requests: ReceivedRequest[] = []
  respond: Respond = (_, response) => response.writeHead(204).end()
  readonly host: string
  readonly url: string

  constructor({ host, url }: Pick<TestServer, 'host' | 'url'>) {
    this.host = host
    this.url = `${url}/hook`
  }

  respondWith(status: number, headers: Record<string, string> = {}): void {
    this.respond = (_, response) => response.writeHead(status, headers).end()
  }
}

async function startReceiver() {
  const server = await startServer(({ headers, body }, outgoing) => {
    receiver.requests.push({ headers, body: body.toString() })
    receiver.respond(outgoing.req, outgoing)
    return undefined
  })
  const receiver = new Receiver(server)
  afterAll(() => server[Symbol.asyncDispose]())
  return receiver
}

const localhost = (host: string): string => host.replace('127.0.0.1', 'localhost')

/** A receiver that only `PLAT_OUTBOUND_ALLOW` lists. */
export const unlistedReceiver = await startReceiver()
const unusedReceivers = await Promise.all(Array.from({ length: 50 }, startReceiver))

process.env['PLAT_WEBHOOK_ALLOW'] = unusedReceivers.map(({ host }) => host).join(',')
// The allowlist of operators must not apply to webhooks.
process.env['PLAT_OUTBOUND_ALLOW'] = [unlistedReceiver.host, localhost(unlistedReceiver.host)].join(',')

export function newReceiver(): Receiver {
  const receiver = unusedReceivers.pop()
  if (receiver === undefined) throw new Error('No receivers left; start more of them.')
  return receiver
}
