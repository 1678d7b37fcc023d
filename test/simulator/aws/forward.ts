import { type IncomingMessage, type OutgoingHttpHeaders, request as send, type ServerResponse } from 'node:http'

/**
 * Forwards a request with changed headers to another server. Streams the body of the request if `body` is undefined.
 */
export function forward(
  request: IncomingMessage,
  response: ServerResponse,
  target: string,
  body: Buffer | undefined,
  changes: OutgoingHttpHeaders = {},
): void {
  const length = body && { 'content-length': body.length }
  const headers = { ...request.headers, host: new URL(target).host, ...length, ...changes }
  const outgoing = send(`${target}${request.url ?? ''}`, { method: request.method, headers }, (incoming) => {
    response.writeHead(incoming.statusCode ?? 502, incoming.headers)
    incoming.pipe(response)
  })
  response.on('close', () => outgoing.destroy())
  outgoing.on('error', () => response.destroy())
  if (body === undefined) request.pipe(outgoing)
  else outgoing.end(body)
}
