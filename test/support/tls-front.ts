import { once } from 'node:events'
import { type IncomingMessage, request, type ServerResponse } from 'node:http'
import { createServer } from 'node:https'
import { pipeline } from 'node:stream/promises'
import { listen } from './http-server.ts'
import { createCertificates } from './slapd.ts'
import { temporaryFolder } from './temporary-folder.ts'

/** Starts a TLS proxy at `https://localhost:<port>` with an untrusted certificate. Keeps all headers, even `Host`. */
export async function startTlsFront(target: string) {
  await using folder = await temporaryFolder()
  const { cert, key } = await createCertificates(folder.path)
  const { hostname, port } = new URL(target)
  const forward = async (incoming: IncomingMessage, outgoing: ServerResponse) => {
    const { method, url: path, headers } = incoming
    const outgoingRequest = request({ hostname, port, method, path, headers })
    const responding = once(outgoingRequest, 'response') as Promise<[IncomingMessage]>
    const [[response]] = await Promise.all([responding, pipeline(incoming, outgoingRequest)])
    outgoing.writeHead(response.statusCode ?? 502, response.rawHeaders)
    await pipeline(response, outgoing)
  }
  const server = createServer({ cert, key }, (incoming, outgoing) => {
    forward(incoming, outgoing).catch(() => outgoing.destroy())
  })
  const { host, ...front } = await listen(server)
  return { ...front, url: `https://${host.replace('127.0.0.1', 'localhost')}` }
}
