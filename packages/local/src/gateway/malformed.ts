import { STATUS_CODES } from 'node:http'
import type { Duplex } from 'node:stream'
import { PlatformError, platformError } from '@platform/core/error'
import { traceIdOf } from '@platform/core/lib/trace'
import type { Connections } from './connections.ts'
import { errorResponse } from './error-response.ts'

export type ParserError = Error & { code?: string; rawPacket?: Buffer }

/** Closes the connection after the response, because the start of the next request is unknown. */
export function rejectMalformedRequest(connections: Connections, socket: Duplex, error: ParserError): void {
  if (!socket.writable || error.code === 'ECONNRESET' || hasEarlierRequest(connections, socket)) {
    socket.destroy()
    return
  }
  socket.end(rawResponse(toPlatformError(error)), () => socket.destroy())
}

/** Builds the bytes of a response for a socket that the HTTP server has released. */
export function rawResponse(error: PlatformError): Buffer {
  const { status, headers, body } = errorResponse(error, traceIdOf(undefined))
  headers.set('content-length', String(body.length)).set('connection', 'close')
  const lines = [...headers].map(([name, value]) => `${name}: ${String(value)}\r\n`)
  return Buffer.concat([Buffer.from(`HTTP/1.1 ${status} ${STATUS_CODES[status]}\r\n${lines.join('')}\r\n`), body])
}

/** If an earlier request is pending, the client would take the error response for the response to that request. */
function hasEarlierRequest(connections: Connections, socket: Duplex): boolean {
  return connections.pendingExchanges(socket).some(({ request, response }) => request.complete || response.headersSent)
}

function toPlatformError({ code, rawPacket }: ParserError): PlatformError {
  if (code === 'HPE_HEADER_OVERFLOW') return platformError('payload_too_large')
  if (code === 'ERR_HTTP_REQUEST_TIMEOUT')
    return new PlatformError('validation_failed', 'The request did not arrive in time.')
  const isOtherMethod = code === 'HPE_INVALID_METHOD' && /^[A-Z-]+ \S+ HTTP\//.test(rawPacket?.toString('latin1') ?? '')
  return isOtherMethod
    ? platformError('route_not_found')
    : new PlatformError('validation_failed', 'The request is not valid HTTP.')
}
