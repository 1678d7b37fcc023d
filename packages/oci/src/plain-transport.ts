import * as http from 'node:http'
import * as https from 'node:https'
import type { Transport, TransportRequest, TransportResponse } from './transport.ts'

/**
 * Creates a transport that does not restrict destinations, for programs whose users may reach any host, such as the
 * command line. `agentFor` selects the agent that opens the connections, for example through a proxy.
 */
export const transportWith =
  (agentFor: (url: URL) => http.Agent | false): Transport =>
  (url, request) =>
    send(new URL(url), request, agentFor)

/** A transport that opens a connection for every request, so that a broken connection affects no other request. */
export const plainTransport = transportWith(() => false)

function send(
  url: URL,
  { method, headers, body, timeoutMs, maxBytes }: TransportRequest,
  agentFor: (url: URL) => http.Agent | false,
): Promise<TransportResponse> {
  return new Promise((resolve, reject) => {
    const open = url.protocol === 'https:' ? https.request : http.request
    const outgoing = open(url, { method, headers: { 'user-agent': 'Platform', ...headers }, agent: agentFor(url) })
    const fail = (error: unknown) => {
      reject(error instanceof Error ? error : new Error('The connection failed.'))
      outgoing.destroy()
    }
    const timer = setTimeout(() => fail(new Error(`No complete response within ${timeoutMs / 1000} s.`)), timeoutMs)
    let hasResponse = false
    outgoing.on('response', (incoming) => {
      hasResponse = true
      readResponse(incoming, maxBytes).then(resolve, fail)
    })
    outgoing.on('error', fail)
    // An invalid response, such as a protocol upgrade, closes the connection without an error.
    outgoing.on('close', () => {
      clearTimeout(timer)
      if (!hasResponse) fail(new Error('The connection ended without a response.'))
    })
    outgoing.end(body)
  })
}

async function readResponse(incoming: http.IncomingMessage, maxBytes: number): Promise<TransportResponse> {
  const parts: Buffer[] = []
  let bytes = 0
  for await (const part of incoming as AsyncIterable<Buffer>) {
    parts.push(part)
    bytes += part.length
    if (bytes > maxBytes) break
  }
  const { statusCode: status = 0, headers } = incoming
  return { status, headers, body: Buffer.concat(parts).subarray(0, maxBytes), isCutShort: bytes > maxBytes }
}
