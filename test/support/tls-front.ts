import { once } from 'node:events'
import { type IncomingMessage, request, type ServerResponse } from 'node:http'
import { createServer } from 'node:https'
import type { AddressInfo } from 'node:net'
import { pipeline } from 'node:stream/promises'
import { certificates } from './slapd.ts'
import { temporaryFolder } from './temporary-folder.ts'

/** A TLS proxy before the platform at `https://localhost:<port>`. */
export interface TlsFront extends AsyncDisposable {
  url: string
}

/** Starts the proxy with a self-signed certificate. Forwards all headers, including `Host`. */
export async function startTlsFront(target: string): Promise<TlsFront> {
  await using folder = await temporaryFolder()
  const { cert, key } = await certificates(folder.path)
  const { hostname, port } = new URL(target)
  const forward = async (incoming: IncomingMessage, outgoing: ServerResponse) => {
    const { method, url: path, headers } = incoming
    const asked = request({ hostname, port, method, path, headers })
    const [[answer]] = await Promise.all([
      once(asked, 'response') as Promise<[IncomingMessage]>,
      pipeline(incoming, asked),
    ])
    outgoing.writeHead(answer.statusCode ?? 502, answer.rawHeaders)
    await pipeline(answer, outgoing)
  }
  const server = createServer({ cert, key }, (incoming, outgoing) => {
    forward(incoming, outgoing).catch(() => outgoing.destroy())
  })
  await once(server.listen(0, '127.0.0.1'), 'listening')
  return {
    url: `https://localhost:${(server.address() as AddressInfo).port}`,
    async [Symbol.asyncDispose]() {
      server.closeAllConnections()
      server.close()
    },
  }
}
