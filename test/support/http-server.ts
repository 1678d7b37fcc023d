import { once } from 'node:events'
import {
  createServer,
  type IncomingHttpHeaders,
  type IncomingMessage,
  type Server,
  type ServerResponse,
} from 'node:http'
import type { AddressInfo, Server as NetServer } from 'node:net'
import { buffer } from 'node:stream/consumers'

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

/** Returns a reply, or writes to the raw response and returns nothing. */
export type Respond = (
  request: ReceivedRequest,
  outgoing: ServerResponse,
) => Promise<ServerReply | undefined> | ServerReply | undefined

export interface ListeningServer extends AsyncDisposable {
  host: string
  url: string
}

export interface TestServer extends ListeningServer {
  requests: ReceivedRequest[]
}

/** Listens on a free port of this machine, or on a port that is already open. */
export async function listen(server: Server, openPort?: NetServer): Promise<ListeningServer> {
  if (openPort) server.listen(openPort)
  else server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  const { address, port } = server.address() as AddressInfo
  return {
    host: `${address}:${port}`,
    url: `http://${address}:${port}`,
    async [Symbol.asyncDispose]() {
      server.closeAllConnections()
      server.close()
      await once(server, 'close')
    },
  }
}

export async function startServer(respond: Respond): Promise<TestServer> {
  const requests: ReceivedRequest[] = []
  const handle = async (incoming: IncomingMessage, outgoing: ServerResponse) => {
    const { method = '', headers } = incoming
    const url = new URL(incoming.url ?? '/', `http://${headers.host}`)
    const request = { method, url, headers, body: await buffer(incoming) }
    requests.push(request)
    const reply = await respond(request, outgoing)
    if (reply !== undefined) outgoing.writeHead(reply.status, reply.headers).end(reply.body)
  }
  const server = createServer((incoming, outgoing) => {
    handle(incoming, outgoing).catch(() => outgoing.destroy())
  })
  return { ...(await listen(server)), requests }
}
