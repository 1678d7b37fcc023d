import type { IncomingMessage, Server, ServerResponse } from 'node:http'
import type { Socket } from 'node:net'
import { setImmediate } from 'node:timers/promises'

/** What a server knows of the callers at the other end of its connections. */
export interface Connections {
  /** A signal that aborts when the caller hangs up, or at `endWaits`. */
  callSignal(response: ServerResponse): AbortSignal
  /** Resolves to whether the caller has gone, as far as can be known. */
  hasHungUp(request: IncomingMessage): Promise<boolean>
  /** Calls back if the answer that is about to be sent turns out to have been read by nobody. */
  onUnread(request: IncomingMessage, response: ServerResponse, takeBack: () => void): void
  /** Aborts the signals of all calls under way. */
  endWaits(): void
}

export function watchConnections(server: Server): Connections {
  const calls = new Set<AbortController>()
  const unread = new WeakMap<Socket, () => void>()
  // The kernel resets a connection that its caller closed with unread bytes; any other close is no error.
  server.on('connection', (socket) => socket.once('close', (hadError) => hadError && unread.get(socket)?.()))
  // Who sends another request has read the answer to the one before.
  server.on('request', (request) => unread.delete(request.socket))

  return {
    callSignal: (response) => {
      const call = new AbortController()
      calls.add(call)
      response.once('close', () => {
        calls.delete(call)
        call.abort()
      })
      return call.signal
    },
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
    endWaits: () => {
      for (const call of calls) call.abort()
    },
  }
}
