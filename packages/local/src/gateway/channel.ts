import type { IncomingMessage } from 'node:http'
import type { Duplex } from 'node:stream'
import { platformError } from '@platform/core/error'
import type { ExchangeContext } from './exchange.ts'
import { rawResponse } from './malformed.ts'
import { senderOf } from './sender.ts'

export const channelPath = '/channel'

export const isChannelRequest = ({ method, url = '', headers }: IncomingMessage): boolean =>
  method === 'GET' && url.split('?', 1)[0] === channelPath && headers.upgrade?.toLowerCase() === 'websocket'

/** Accepts every origin, because a browser has no credentials of a relay. */
export function acceptChannel(
  context: ExchangeContext | undefined,
  request: IncomingMessage,
  socket: Duplex,
  head: Buffer,
): void {
  // The HTTP server has released the socket; without a listener, a socket error would end the process.
  socket.on('error', () => socket.destroy())
  const reject = (code: Parameters<typeof platformError>[0]) =>
    socket.end(rawResponse(platformError(code, { retryAfterSeconds: 1 })), () => socket.destroy())
  if (context === undefined) return void reject('starting')
  const accept = context.channel
  if (accept === undefined) return void reject('route_not_found')
  const { address } = senderOf(request, context.trustedProxies)
  if (!accept(request, socket, head, address)) reject('overloaded')
}
