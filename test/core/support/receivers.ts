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
export interface Got {
  headers: IncomingHttpHeaders
  body: string
}

/** A receiver: what came, and what it answers. */
export class Receiver {
  readonly got: Got[] = []
  /** Answers a request; 204 unless a test says otherwise. */
  answer: (request: IncomingMessage, response: ServerResponse) => unknown = (_, response) =>
    response.writeHead(204).end()
  readonly #server = createServer((request, response) => {
    void this.#take(request, response)
  })

  async listen(): Promise<this> {
    await once(this.#server.listen(0, '127.0.0.1'), 'listening')
    return this
  }

  async #take(request: IncomingMessage, response: ServerResponse): Promise<void> {
    this.got.push({ headers: request.headers, body: await text(request) })
    this.answer(request, response)
  }

  get host(): string {
    return `127.0.0.1:${(this.#server.address() as AddressInfo).port}`
  }

  get url(): string {
    return `http://${this.host}/hook`
  }

  /** Answers every request with this status. */
  answerWith(status: number, headers: Record<string, string> = {}): void {
    this.answer = (_, response) => response.writeHead(status, headers).end()
  }

  close(): void {
    this.#server.close()
    this.#server.closeAllConnections()
  }
}

const all = await Promise.all(Array.from({ length: 50 }, () => new Receiver().listen()))
const [forbidden, ...free] = all
afterAll(() => all.forEach((receiver) => receiver.close()))

process.env['PLAT_OUTBOUND_ALLOW'] = free.map(({ host }) => host).join(',')

/** A receiver that nobody else uses. */
export function newReceiver(): Receiver {
  const receiver = free.pop()
  if (receiver === undefined) throw new Error('There are no more receivers: make more of them.')
  return receiver
}

/** A receiver that the platform may not reach. */
export const forbiddenReceiver = forbidden as Receiver
