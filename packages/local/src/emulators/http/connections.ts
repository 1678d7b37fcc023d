import { once } from 'node:events'
import type { IncomingMessage, Server, ServerResponse } from 'node:http'
import type { Socket } from 'node:net'
import { setImmediate } from 'node:timers/promises'

export interface Connections {
  /** Returns a signal that aborts at the end of the response, or at `close`. */
  signalOf(response: ServerResponse): AbortSignal
  /**
   * Whether the caller has disconnected. Lets the event loop poll the sockets first, so that a disconnect is visible.
   */
  hasDisconnected(request: IncomingMessage): Promise<boolean>
  /** Calls `revert` if the connection breaks before the caller has read the response. */
  onUnread(request: IncomingMessage, response: ServerResponse, revert: () => void): void
  /** Ends long polls, completes received requests, then closes all connections. */
  close(): Promise<void>
}

export function watchConnections(server: Server): Connections {
  const activeExchanges = new Map<ServerResponse, AbortController>()
  const onUnreadBySocket = new WeakMap<Socket, () => void>()
  // The kernel resets a connection whose caller closes it with unread bytes. Other closes report no error.
  server.on('connection', (socket) => socket.once('close', (hadError) => hadError && onUnreadBySocket.get(socket)?.()))
  server.on('request', (request, response) => {
    // A caller that sends another request has read the previous response.
    onUnreadBySocket.delete(request.socket)
    const exchange = new AbortController()
    activeExchanges.set(response, exchange)
    response.once('close', () => {
      activeExchanges.delete(response)
      exchange.abort()
    })
  })

  return {
    signalOf: (response) => activeExchanges.get(response)?.signal ?? AbortSignal.abort(),
    hasDisconnected: async ({ socket }) => {
      await setImmediate()
      await setImmediate()
      return socket.readableEnded || socket.destroyed
    },
    onUnread: ({ socket }, response, revert) => {
      onUnreadBySocket.set(socket, revert)
      response.once('close', () => response.writableFinished || revert())
    },
    close: async () => {
      for (const exchange of activeExchanges.values()) exchange.abort()
      const pendingResponses = [...activeExchanges.keys()].filter((response) => response.req.complete)
      await Promise.all(pendingResponses.map((response) => once(response, 'close')))
      server.closeAllConnections()
    },
  }
}
