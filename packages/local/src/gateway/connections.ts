import { once } from 'node:events'
import type { IncomingMessage, Server, ServerResponse } from 'node:http'
import type { Duplex } from 'node:stream'

export interface Exchange {
  request: IncomingMessage
  response: ServerResponse
}

/** Tracks connections with pending responses, so that a server can close without interrupting them. */
export interface Connections {
  begin: (exchange: Exchange) => void
  /** The pending responses of a connection, oldest first. */
  pendingExchanges: (socket: Duplex) => readonly Exchange[]
  /** Whether connections close after their current response. */
  readonly isDraining: boolean
  /** Closes idle connections immediately, and the others after their last response. */
  drain: () => void
}

export function trackConnections(server: Server): Connections {
  const pendingBySocket = new Map<Duplex, Exchange[]>()
  let isDraining = false

  server.on('connection', (socket) => {
    pendingBySocket.set(socket, [])
    socket.once('close', () => pendingBySocket.delete(socket))
  })

  const settle = ({ request: { socket }, response }: Exchange) => {
    const remainingExchanges = (pendingBySocket.get(socket) ?? []).filter((other) => other.response !== response)
    if (pendingBySocket.has(socket)) pendingBySocket.set(socket, remainingExchanges)
    if (isDraining && remainingExchanges.length === 0) socket.end()
  }

  return {
    begin: (exchange) => {
      pendingBySocket.get(exchange.request.socket)?.push(exchange)
      exchange.response.once('close', () => settle(exchange))
    },
    pendingExchanges: (socket) => pendingBySocket.get(socket) ?? [],
    get isDraining() {
      return isDraining
    },
    drain: () => {
      isDraining = true
      for (const [socket, exchanges] of pendingBySocket) if (exchanges.length === 0) socket.destroy()
    },
  }
}

/** Completes running requests; closes the remaining connections after the limit. */
export async function drainServer(server: Server, connections: Connections, limitMs: number): Promise<void> {
  if (!server.listening) return
  const closed = once(server, 'close')
  server.close()
  connections.drain()
  const timer = setTimeout(() => server.closeAllConnections(), limitMs)
  await closed
  clearTimeout(timer)
}
