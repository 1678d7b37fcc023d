import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { platformError } from '@platform/core/error'
import { listenAt } from '../listening.ts'
import { createByteBudget } from './byte-budget.ts'
import { drainServer, trackConnections } from './connections.ts'
import { handleRequest, startingResponse, type ExchangeContext } from './exchange.ts'
import { acceptChannel, isChannelRequest } from './channel.ts'
import { rawResponse, rejectMalformedRequest } from './malformed.ts'
import type { HttpResponse } from './result.ts'

export interface Gateway {
  /** `http://host:port` with the bound port. */
  url: string
  /** Starts to serve requests. Until then every path except liveness returns 503 `starting`. */
  open: (context: ExchangeContext) => void
  /** Completes running requests; closes the remaining connections after the limit. */
  drain: (limitMs: number) => Promise<void>
}

/** Limits of API Gateway, and the platform's own limits where API Gateway has none. */
const limits = {
  maxHeaderSize: 10_240,
  headersTimeout: 10_000,
  // Covers the headers and the body.
  requestTimeout: 30_000,
  keepAliveTimeout: 65_000,
  connectionsCheckingInterval: 5000,
  // `handleRequest` checks the `Host` header and responds with an error body.
  requireHostHeader: false,
  // Other requests for an upgrade are treated as ordinary requests.
  shouldUpgradeCallback: isChannelRequest,
}
/** Up to 20,000 of these connections may be control channels. */
const maxConnections = 30_000
/** Limits the bodies of all requests and responses together. */
const maxMemoryBytes = 64 * 1024 * 1024
/** Limits the incomplete bodies of unauthenticated callers together. */
const maxUnauthenticatedBytes = 16 * 1024 * 1024

/** Port 0 selects a free port. Rejects if the address cannot be bound. */
export async function listen(host: string, port: number): Promise<Gateway> {
  const server = createServer(limits)
  server.maxConnections = maxConnections
  const connections = trackConnections(server)
  const memory = createByteBudget(maxMemoryBytes)
  const unauthenticatedBudget = createByteBudget(maxUnauthenticatedBytes)
  let context: ExchangeContext | undefined

  const respond = async (request: IncomingMessage, response: ServerResponse) => {
    connections.begin({ request, response })
    const charges = { charge: memory.open(), unauthenticated: unauthenticatedBudget.open() }
    response.once('close', () => Object.values(charges).forEach((each) => each.release()))
    const result =
      context === undefined ? startingResponse(request) : await handleRequest(context, request, response, charges)
    if (!response.destroyed) charges.charge.set(result.body.length, () => response.destroy())
    send(response, result, connections.isDraining)
  }
  server.on('request', (request, response) => void respond(request, response))
  server.on('checkExpectation', (request, response) => void respond(request, response))
  server.on('upgrade', (request, socket, head) => acceptChannel(context, request, socket, head))
  server.on('clientError', (error, socket) => rejectMalformedRequest(connections, socket, error))
  server.on('connect', (_request, socket) => {
    // The HTTP server has released the socket; without a listener, a socket error would end the process.
    socket.on('error', () => socket.destroy())
    socket.end(rawResponse(platformError('route_not_found')))
  })
  const address = await listenAt(server, host, port)
  return {
    url: urlOf(address),
    open: (openedContext) => {
      context = openedContext
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

/** Replaces a wildcard address with the loopback address, because clients cannot connect to a wildcard. */
function urlOf({ address, family, port }: AddressInfo): string {
  const host = address === '0.0.0.0' || address === '::' ? '127.0.0.1' : address
  return `http://${family === 'IPv6' && host !== '127.0.0.1' ? `[${host}]` : host}:${port}`
}
