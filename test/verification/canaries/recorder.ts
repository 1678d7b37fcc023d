import { once } from 'node:events'
import { createServer, type IncomingMessage, request, type ServerResponse } from 'node:http'
import { connect } from 'node:net'
import { buffer } from 'node:stream/consumers'
import { pipeline } from 'node:stream/promises'
import { listen } from '../../support/http-server.ts'

interface Message {
  headers: string[]
  /** A byte string (latin1). */
  body: string
}

export interface Exchange {
  method: string
  target: string
  request: Message
  status: number
  response: Message
}

/** Starts a proxy before the platform that records all exchanges, except the content of upgraded connections. */
export async function startRecorder(platformUrl: string) {
  const exchanges: Exchange[] = []
  const { hostname, port } = new URL(platformUrl)
  const server = createServer((incoming, outgoing) => {
    forward(incoming, outgoing, { hostname, port })
      .then((exchange) => exchanges.push(exchange))
      .catch(() => outgoing.destroy())
  })
  server.on('upgrade', (incoming, socket, head) => {
    const upstream = connect(Number(port), hostname)
    upstream.write(`${headOf(incoming)}\r\n\r\n`)
    upstream.write(head)
    pipeline(socket, upstream, socket).catch(() => undefined)
  })
  return { ...(await listen(server)), exchanges }
}

const headOf = ({ method, url, rawHeaders }: IncomingMessage): string =>
  [
    `${method} ${url} HTTP/1.1`,
    ...rawHeaders.flatMap((name, index) => (index % 2 === 0 ? [`${name}: ${rawHeaders[index + 1]}`] : [])),
  ].join('\r\n')

const toMessage = ({ rawHeaders: headers }: IncomingMessage, body: Buffer): Message => ({
  headers,
  body: body.toString('latin1'),
})

async function forward(
  incoming: IncomingMessage,
  outgoing: ServerResponse,
  address: { hostname: string; port: string },
): Promise<Exchange> {
  const { method = '', url: target = '', rawHeaders: headers } = incoming
  const requestBody = await buffer(incoming)
  const upstream = request({ ...address, method, path: target, headers, agent: false })
  outgoing.on('close', () => upstream.destroy())
  // A connection may also break after its response.
  upstream.on('error', () => undefined)
  upstream.end(requestBody)
  const [response]: IncomingMessage[] = await once(upstream, 'response')
  if (response === undefined) throw new Error('No response')
  const responseBody = await buffer(response)
  const status = response.statusCode ?? 0
  outgoing.writeHead(status, response.rawHeaders)
  outgoing.end(responseBody)
  return {
    method,
    target,
    request: toMessage(incoming, requestBody),
    status,
    response: toMessage(response, responseBody),
  }
}
