import { once } from 'node:events'
import type { IncomingMessage, Server, ServerResponse } from 'node:http'
import type { Socket } from 'node:net'
import { setImmediate } from 'node:timers/promises'

/** What a server knows of the callers at the other end of its connections. */
export interface Connections {
  /** Aborts when the caller of a request hangs up, or at `close`. */
  signalOf(response: ServerResponse): AbortSignal
  /** Resolves to whether the caller has gone, as far as can be known. */
  hasHungUp(request: IncomingMessage): Promise<boolean>
  /** Calls back if the answer that is about to be sent turns out to have been read by nobody. */
  onUnread(request: IncomingMessage, response: ServerResponse, takeBack: () => void): void
  /** Ends waits, lets the requests that have arrived be answered, then closes every connection. */
  close(): Promise<void>
}

export function watchConnections(server: Server): Connections {
  const underWay = new Map<ServerResponse, AbortController>()
  const unread = new WeakMap<Socket, () => void>()
  // The kernel resets a connection that its caller closed with unread bytes; any other close is no error.
  server.on('connection', (socket) => socket.once('close', (hadError) => hadError && unread.get(socket)?.()))
  server.on('request', (request, response) => {
    // Who sends another request has read the answer to the one before.
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
      // Two turns, so that the event loop polls the sockets in between: a hang-up may have arrived unseen.
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
