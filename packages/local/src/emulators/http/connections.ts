import { once } from 'node:events'
import type { IncomingMessage, Server, ServerResponse } from 'node:http'
import type { Socket } from 'node:net'
import { setImmediate } from 'node:timers/promises'

/** The state of callers and their connections. */
export interface Connections {
  /** Aborts when the caller disconnects, or at `close`. */
  signalOf(response: ServerResponse): AbortSignal
  /** Whether the caller has disconnected, as far as known. */
  hasHungUp(request: IncomingMessage): Promise<boolean>
  /** Calls `takeBack` if the response is not read. */
  onUnread(request: IncomingMessage, response: ServerResponse, takeBack: () => void): void
  /** Ends long polls, completes received requests, then closes every connection. */
  close(): Promise<void>
}

export function watchConnections(server: Server): Connections {
  const underWay = new Map<ServerResponse, AbortController>()
  const unread = new WeakMap<Socket, () => void>()
  // The kernel resets a connection that its caller closed with unread bytes; other closes are no error.
  server.on('connection', (socket) => socket.once('close', (hadError) => hadError && unread.get(socket)?.()))
  server.on('request', (request, response) => {
    // A caller that sends another request has read the previous response.
    unread.delete(request.socket)
    const exchange = new AbortController()
    underWay.set(response, exchange)
    response.once('close', () => {
      underWay.delete(response)
      exchange.abort()
    })
  })

  return {
    signalOf: (response) => underWay.get(response)?.signal ?? AbortSignal.abort(),
    hasHungUp: async ({ socket }) => {
      // Two turns, so the event loop polls the sockets in between and sees a disconnect.
      await setImmediate()
      await setImmediate()
      return socket.readableEnded || socket.destroyed
    },
    onUnread: ({ socket }, response, takeBack) => {
      unread.set(socket, takeBack)
      response.once('close', () => response.writableFinished || takeBack())
    },
    close: async () => {
      for (const exchange of underWay.values()) exchange.abort()
      const answering = [...underWay.keys()].filter((response) => response.req.complete)
      await Promise.all(answering.map((response) => once(response, 'close')))
      server.closeAllConnections()
    },
  }
}
