import { once } from 'node:events'
import { createServer, type IncomingHttpHeaders, type IncomingMessage, type ServerResponse } from 'node:http'
import { type AddressInfo } from 'node:net'
import { text } from 'node:stream/consumers'
import { afterAll } from 'vitest'

/**
 * Receivers of webhooks, on loopback. Which of them the platform may reach is a setting, read when core is first imported:
 * import this file before it.
 */

/** A request as a receiver sees it. */
export interface ReceivedRequest {
  headers: IncomingHttpHeaders
  body: string
}

/** A receiver: what came, and what it answers. */
export class Receiver {
  readonly requests: ReceivedRequest[] = []
  /** Answers a request; 204 unless a test says otherwise. */
  respond: (request: IncomingMessage, response: ServerResponse) => unknown = (_, response) =>
    response.writeHead(204).end()
  readonly #server = createServer((request, response) => {
    void this.#take(request, response)
  })

  async listen(): Promise<this> {
    await once(this.#server.listen(0, '127.0.0.1'), 'listening')
    return this
  }

  async #take(request: IncomingMessage, response: ServerResponse): Promise<void> {
    this.requests.push({ headers: request.headers, body: await text(request) })
    this.respond(request, response)
  }

  get host(): string {
    return `127.0.0.1:${(this.#server.address() as AddressInfo).port}`
  }

  get url(): string {
    return `http://${this.host}/hook`
  }

  /** Answers every request with this status. */
  respondWith(status: number, headers: Record<string, string> = {}): void {
    this.respond = (_, response) => response.writeHead(status, headers).end()
  }

  close(): void {
    this.#server.close()
    this.#server.closeAllConnections()
  }
}

const all = await Promise.all(Array.from({ length: 50 }, () => new Receiver().listen()))
const [forbidden, ...available] = all
afterAll(() => all.forEach((receiver) => receiver.close()))

process.env['PLAT_OUTBOUND_ALLOW'] = available.map(({ host }) => host).join(',')

/** A receiver that nobody else uses. */
export function newReceiver(): Receiver {
  const receiver = available.pop()
  if (receiver === undefined) throw new Error('There are no more receivers: make more of them.')
  return receiver
}

/** A receiver that the platform may not reach. */
export const unreachableReceiver = forbidden as Receiver
