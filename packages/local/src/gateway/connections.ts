import { once } from 'node:events'
import type { IncomingMessage, Server, ServerResponse } from 'node:http'
import type { Duplex } from 'node:stream'

/** An answer that is still owed on a connection. */
export interface Exchange {
  request: IncomingMessage
  response: ServerResponse
}

/** Knows which connections owe an answer, so that a server can close without cutting one off. */
export interface Connections {
  begin: (exchange: Exchange) => void
  /** The answers owed on a connection, oldest first. */
  owed: (socket: Duplex) => readonly Exchange[]
  /** Whether connections end with the answer under way. */
  readonly draining: boolean
  /** Closes what owes nothing now, and the rest with their last answer. */
  drain: () => void
}

export function trackConnections(server: Server): Connections {
  const owedBy = new Map<Duplex, Exchange[]>()
  let draining = false

  server.on('connection', (socket) => {
    owedBy.set(socket, [])
    socket.once('close', () => owedBy.delete(socket))
  })

  const settle = ({ request: { socket }, response }: Exchange) => {
    const left = (owedBy.get(socket) ?? []).filter((other) => other.response !== response)
    if (owedBy.has(socket)) owedBy.set(socket, left)
    if (draining && left.length === 0) socket.end()
  }

  return {
    begin: (exchange) => {
      owedBy.get(exchange.request.socket)?.push(exchange)
      exchange.response.once('close', () => settle(exchange))
    },
    owed: (socket) => owedBy.get(socket) ?? [],
    get draining() {
      return draining
    },
    drain: () => {
      draining = true
      for (const [socket, exchanges] of owedBy) if (exchanges.length === 0) socket.destroy()
    },
  }
}

/** Takes no more connections, answers what is under way, and cuts off what is still there after the limit. */
export async function drainServer(server: Server, connections: Connections, limitMs: number): Promise<void> {
  if (!server.listening) return
  const closed = once(server, 'close')
  server.close()
  connections.drain()
  const limit = setTimeout(() => server.closeAllConnections(), limitMs)
  await closed
  clearTimeout(limit)
}
