import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { platformError } from '@platform/core/error'
import { listenAt } from '../listening.ts'
import { drainServer, trackConnections } from './connections.ts'
import { handleRequest, startingResponse, type ExchangeContext } from './exchange.ts'
import { rawResponse, rejectMalformedRequest } from './malformed.ts'
import type { HttpResponse } from './result.ts'

export interface Gateway {
  /** `http://host:port` with the bound port. */
  url: string
  /** Starts serving; until then every path except liveness returns 503 `starting`. */
  open: (context: ExchangeContext) => void
  /** Accepts no more connections, completes running requests, and closes the remaining ones after the limit. */
  drain: (limitMs: number) => Promise<void>
}

/** API Gateway's limits, where it has one. */
const limits = {
  maxHeaderSize: 10_240,
  headersTimeout: 10_000,
  requestTimeout: 60_000,
  keepAliveTimeout: 65_000,
  connectionsCheckingInterval: 5000,
  // The exchange checks this and responds with an error body.
  requireHostHeader: false,
}
const maximumConnections = 10_000

/** Listens; port 0 picks a free one. Rejects if the address cannot be bound. */
export async function listen(host: string, port: number): Promise<Gateway> {
  const server = createServer(limits)
  server.maxConnections = maximumConnections
  const connections = trackConnections(server)
  let context: ExchangeContext | undefined

  const respond = async (request: IncomingMessage, response: ServerResponse) => {
    connections.begin({ request, response })
    const result = context === undefined ? startingResponse(request) : await handleRequest(context, request, response)
    send(response, result, connections.draining)
  }
  server.on('request', (request, response) => void respond(request, response))
  server.on('checkExpectation', (request, response) => void respond(request, response))
  server.on('clientError', (error, socket) => rejectMalformedRequest(connections, socket, error))
  server.on('connect', (_request, socket) => {
    // HTTP releases the socket here; without a listener, a disconnect would end the process.
    socket.on('error', () => socket.destroy())
    socket.end(rawResponse(platformError('route_not_found')))
  })
  const address = await listenAt(server, host, port)
  return {
    url: urlOf(address),
    open: (opened) => {
      context = opened
    },
    drain: (limitMs) => drainServer(server, connections, limitMs),
  }
}

function send(response: ServerResponse, { status, headers, body }: HttpResponse, isLast: boolean): void {
  if (response.destroyed || response.headersSent) return
  if (isLast) headers.set('connection', 'close')
  // A function may omit the body of a HEAD response; its length is then unknown.
  const isEmpty = status === 204 || status === 304 || (response.req.method === 'HEAD' && body.length === 0)
  if (!isEmpty) headers.set('content-length', String(body.length))
  response.writeHead(status, Object.fromEntries(headers))
  response.end(isEmpty ? undefined : body)
}

/** Replaces a wildcard address by the loopback address. */
function urlOf({ address, family, port }: AddressInfo): string {
  const host = address === '0.0.0.0' || address === '::' ? '127.0.0.1' : address
  return `http://${family === 'IPv6' && host !== '127.0.0.1' ? `[${host}]` : host}:${port}`
}
