import { once } from 'node:events'
import { rmSync } from 'node:fs'
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http'
import { Readable } from 'node:stream'
import { pipeline } from 'node:stream/promises'
import { setImmediate as nextImmediate } from 'node:timers/promises'
import type { RequestHandler } from './request-handler.ts'
import type { ModuleEnvironment } from './environment.ts'
import type { Logger } from './logger.ts'

// Larger than any request that the platform's gateway allows.
const maxBodyBytes = 8 * 1024 * 1024

/** Starts an HTTP server on a Unix socket or a port. Rejects if it cannot listen there. */
export async function listen(
  handler: RequestHandler,
  address: ModuleEnvironment['address'],
  log: Logger,
): Promise<HttpServer> {
  const server = createServer()
  const httpServer = new HttpServer(server, handler, log)
  if ('path' in address) removeStaleSocket(address.path)
  server.listen(address)
  await once(server, 'listening')
  return httpServer
}

// A crashed instance leaves its socket behind. If the socket cannot be removed, listening fails with the reason.
function removeStaleSocket(path: string): void {
  try {
    rmSync(path, { force: true })
  } catch {}
}

/** An HTTP server that can close even if clients keep their connections open. */
class HttpServer {
  readonly #server: Server
  readonly #handler: RequestHandler
  readonly #log: Logger
  #isDraining = false
  #isClosed = false
  #acceptedCount = 0

  constructor(server: Server, handler: RequestHandler, log: Logger) {
    this.#server = server
    this.#handler = handler
    this.#log = log
    server.on('connection', () => (this.#acceptedCount += 1))
    server.on('request', (incoming, outgoing) => void this.#handle(incoming, outgoing))
  }

  /** The path of the socket, or `host:port`. */
  get address(): string {
    const address = this.#server.address()
    return typeof address === 'object' && address ? `${address.address}:${address.port}` : String(address)
  }

  /** Stops accepting connections. Open connections, including those in the backlog, close after their next response. */
  async drain(): Promise<void> {
    this.#isDraining = true
    await this.#acceptBacklog()
    const closed = once(this.#server, 'close')
    this.#server.close()
    await closed
  }

  // Closing the server would reset the connections in the backlog. Node.js accepts one connection per turn of the event
  // loop, so the backlog is empty after a turn without a new connection.
  async #acceptBacklog(): Promise<void> {
    for (let previousCount = -1; this.#acceptedCount !== previousCount && !this.#isClosed;) {
      previousCount = this.#acceptedCount
      // The event loop polls for connections once between two immediates.
      await nextImmediate()
      await nextImmediate()
    }
  }

  closeConnections(): void {
    this.#isClosed = true
    this.#server.closeAllConnections()
  }

  // On failure, closes the connection, so that the client does not wait.
  async #handle(incoming: IncomingMessage, outgoing: ServerResponse): Promise<void> {
    const disconnection = new AbortController()
    outgoing.once('close', () => disconnection.abort())
    try {
      const body = await readBody(incoming)
      const response = body
        ? await this.#handler(requestOf(incoming, body, disconnection.signal))
        : new Response(null, { status: 413 })
      if (this.#isDraining) outgoing.setHeader('connection', 'close')
      await send(response, outgoing)
    } catch (error) {
      if (!disconnection.signal.aborted) this.#log.error('A response failed', { path: incoming.url, error })
      outgoing.destroy()
    }
  }
}

// Reads to the end of the body; returns undefined if it has more than `maxBodyBytes`.
async function readBody(incoming: IncomingMessage): Promise<Buffer<ArrayBuffer> | undefined> {
  const chunks: Buffer[] = []
  let bytes = 0
  incoming.on('data', (chunk: Buffer) => {
    bytes += chunk.length
    if (bytes <= maxBodyBytes) chunks.push(chunk)
  })
  await once(incoming, 'end')
  return bytes > maxBodyBytes ? undefined : Buffer.concat(chunks)
}

function requestOf(incoming: IncomingMessage, body: Buffer<ArrayBuffer>, signal: AbortSignal): Request {
  const { method = 'GET', url = '/', rawHeaders } = incoming
  const headers = new Headers()
  for (let index = 0; index < rawHeaders.length; index += 2) {
    headers.append(rawHeaders[index] ?? '', rawHeaders[index + 1] ?? '')
  }
  const isBodiless = method === 'GET' || method === 'HEAD'
  return new Request(`http://module${url}`, { method, headers, signal, ...(!isBodiless && { body }) })
}

async function send({ status, headers, body }: Response, outgoing: ServerResponse): Promise<void> {
  for (const [name, value] of headers) outgoing.appendHeader(name, value)
  outgoing.writeHead(status)
  if (body === null || outgoing.req.method === 'HEAD') outgoing.end()
  else await pipeline(Readable.fromWeb(body), outgoing)
}
