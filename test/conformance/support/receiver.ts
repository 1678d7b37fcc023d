import { once } from 'node:events'
import { createServer, type IncomingHttpHeaders, type IncomingMessage, type ServerResponse } from 'node:http'
import { text } from 'node:stream/consumers'

export interface Received {
  path: string
  headers: IncomingHttpHeaders
  body: string
}

/** A webhook receiver on this machine. */
export interface Receiver extends AsyncDisposable {
  url: string
  received: Received[]
  answerWith: (status: number, headers?: Record<string, string>) => void
  /** Paths that never respond. */
  silentAt: Set<string>
}

/** Listens on the first free address; undefined if all are in use. */
export async function receiverAt(targets: readonly string[]): Promise<Receiver | undefined> {
  for (const target of targets) {
    const receiver = await listen(target).catch(() => undefined)
    if (receiver !== undefined) return receiver
  }
  return undefined
}

async function listen(target: string): Promise<Receiver> {
  const { hostname, port } = new URL(`http://${target}`)
  const received: Received[] = []
  const silentAt = new Set<string>()
  let [status, headers]: [number, Record<string, string>] = [204, {}]
  const receive = async (request: IncomingMessage, response: ServerResponse) => {
    const body = await text(request)
    const { url: path = '', headers: sent } = request
    received.push({ path, headers: sent, body })
    if (silentAt.has(path)) return
    response.writeHead(status, headers).end()
  }
  const server = createServer((request, response) => void receive(request, response))
  server.listen(Number(port || 80), hostname.replace(/^\[|\]$/g, ''))
  await once(server, 'listening')
  const address = server.address()
  return {
    url: `http://${hostname}:${typeof address === 'object' ? address?.port : port}`,
    received,
    silentAt,
    answerWith: (nextStatus, nextHeaders = {}) => {
      ;[status, headers] = [nextStatus, nextHeaders]
    },
    [Symbol.asyncDispose]: async () => {
      server.closeAllConnections()
      server.close()
      await once(server, 'close')
    },
  }
}
