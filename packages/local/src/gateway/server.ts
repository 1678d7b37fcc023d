import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { platformError } from '@platform/core/error'
import { listenAt } from '../listening.ts'
import { drainServer, trackConnections } from './connections.ts'
import { answerRequest, answerWhileStarting, type ExchangeContext } from './exchange.ts'
import { rawAnswer, refuseBytes } from './malformed.ts'
import type { HttpAnswer } from './result.ts'

/** Where the platform is reached. */
export interface Gateway {
  /** `http://host:port` with the port that was bound. */
  url: string
  /** Begins to serve; before, every path but liveness answers 503 `starting`. */
  open: (context: ExchangeContext) => void
  /** Takes no more connections, answers what is under way, and cuts off what is still there after the limit. */
  drain: (limitMs: number) => Promise<void>
}

/** The limits of a front door: API Gateway's where it has one. */
const limits = {
  maxHeaderSize: 10_240,
  headersTimeout: 10_000,
  requestTimeout: 60_000,
  keepAliveTimeout: 65_000,
  connectionsCheckingInterval: 5000,
  // Checked by the exchange instead, which answers with an error body.
  requireHostHeader: false,
}
const maximumConnections = 10_000

/** Listens; port 0 takes a free one. Rejects when the address cannot be bound. */
export async function listen(host: string, port: number): Promise<Gateway> {
  const server = createServer(limits)
  server.maxConnections = maximumConnections
  const connections = trackConnections(server)
  let context: ExchangeContext | undefined

  const respond = async (request: IncomingMessage, response: ServerResponse) => {
    connections.begin({ request, response })
    const answer =
      context === undefined ? answerWhileStarting(request) : await answerRequest(context, request, response)
    send(response, answer, connections.draining)
  }
  server.on('request', (request, response) => void respond(request, response))
  server.on('checkExpectation', (request, response) => void respond(request, response))
  server.on('clientError', (error, socket) => refuseBytes(connections, socket, error))
  server.on('connect', (_request, socket) => {
    // HTTP lets go of the socket here; without a listener a caller who hangs up would end the process.
    socket.on('error', () => socket.destroy())
    socket.end(rawAnswer(platformError('route_not_found')))
  })
  const address = await listenAt(server, host, port)
  return {
    url: urlOf(address),
    open: (given) => {
      context = given
    },
    drain: (limitMs) => drainServer(server, connections, limitMs),
  }
}

function send(response: ServerResponse, { status, headers, body }: HttpAnswer, isLast: boolean): void {
  if (response.destroyed || response.headersSent) return
  if (isLast) headers.set('connection', 'close')
  // To HEAD a function may leave out the body, whose length is not known then.
  const isEmpty = status === 204 || status === 304 || (response.req.method === 'HEAD' && body.length === 0)
  if (!isEmpty) headers.set('content-length', String(body.length))
  response.writeHead(status, Object.fromEntries(headers))
  response.end(isEmpty ? undefined : body)
}

/** A wildcard address names no place to connect to; this machine does. */
function urlOf({ address, family, port }: AddressInfo): string {
  const host = address === '0.0.0.0' || address === '::' ? '127.0.0.1' : address
  return `http://${family === 'IPv6' && host !== '127.0.0.1' ? `[${host}]` : host}:${port}`
}
