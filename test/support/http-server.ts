import { once } from 'node:events'
import { createServer, type IncomingHttpHeaders, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { buffer } from 'node:stream/consumers'

/** A request that came. */
export interface ReceivedRequest {
  method: string
  url: URL
  headers: IncomingHttpHeaders
  body: Buffer
}

export interface ServerReply {
  status: number
  headers?: Readonly<Record<string, string | string[]>>
  body?: string | Buffer
}

/** What answers: with a reply, or by itself on the raw answer. */
export type Respond = (
  request: ReceivedRequest,
  outgoing: ServerResponse,
) => Promise<ServerReply | undefined> | ServerReply | undefined

/** A server that does as it is told, on a port of its own. */
export interface Server extends AsyncDisposable {
  /** `127.0.0.1` and the port. */
  host: string
  url: string
  requests: ReceivedRequest[]
}

export async function startServer(respond: Respond): Promise<Server> {
  const requests: ReceivedRequest[] = []
  const answer = async (incoming: IncomingMessage, outgoing: ServerResponse) => {
    const { method = '', headers } = incoming
    const url = new URL(incoming.url ?? '/', `http://${headers.host}`)
    const request = { method, url, headers, body: await buffer(incoming) }
    requests.push(request)
    const reply = await respond(request, outgoing)
    if (reply !== undefined) outgoing.writeHead(reply.status, reply.headers).end(reply.body)
  }
  const server = createServer((incoming, outgoing) => {
    answer(incoming, outgoing).catch(() => outgoing.destroy())
  }).listen(0, '127.0.0.1')
  await once(server, 'listening')
  const { port } = server.address() as AddressInfo
  return {
    host: `127.0.0.1:${port}`,
    url: `http://127.0.0.1:${port}`,
    requests,
    async [Symbol.asyncDispose]() {
      server.closeAllConnections()
      server.close()
    },
  }
}
