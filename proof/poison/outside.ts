import { once } from 'node:events'
import { createServer, type IncomingMessage, type RequestListener, type Server } from 'node:http'
import { join } from 'node:path'
import { text } from 'node:stream/consumers'
import { temporaryFolder } from '../../test/support/temporary-folder.ts'

/** What messages lead to outside of the platform: receivers of webhooks, instances of modules, the host of those. */
export interface Outside extends AsyncDisposable {
  /** Settings with which the platform may reach it. */
  settings: Record<string, string>
  receiverUrl: string
  /** Where instances of modules listen. */
  socketPath: string
  /** The ids of the events that somebody was handed, each as often as that was. */
  heard: string[]
}

export async function startOutside(): Promise<Outside> {
  const folder = await temporaryFolder()
  const heard: string[] = []
  const receiver = await listening((request, response) => {
    heard.push(String(request.headers['webhook-id']))
    response.writeHead(204).end()
  })
  const host = await listening((request, response) => {
    const isList = request.method === 'GET'
    response.writeHead(isList ? 200 : 204, { 'content-type': 'application/json' }).end(isList ? '{"items":[]}' : '')
  })
  const socketPath = join(folder.path, 'module')
  const instance = await listening((request, response) => {
    void handedBy(request).then((handled) => {
      heard.push(...handled)
      const answer = JSON.stringify({ handled, failed: [] })
      return response.writeHead(200, { 'content-type': 'application/json' }).end(answer)
    })
  }, socketPath)
  const receiverHost = hostOf(receiver)
  return {
    settings: { PLAT_OUTBOUND_ALLOW: receiverHost, PLAT_MODULE_HOST_URL: `http://${hostOf(host)}` },
    receiverUrl: `http://${receiverHost}/hook`,
    socketPath,
    heard,
    [Symbol.asyncDispose]: async () => {
      for (const server of [receiver, host, instance]) {
        server.close()
        server.closeAllConnections()
      }
      await folder[Symbol.asyncDispose]()
    },
  }
}

/** The ids of the events that an instance is handed. */
async function handedBy(request: IncomingMessage): Promise<string[]> {
  return JSON.parse(await text(request)).events.map(({ id }: { id: string }) => id)
}

async function listening(answer: RequestListener, path?: string): Promise<Server> {
  const server = createServer(answer)
  await once(path === undefined ? server.listen(0, '127.0.0.1') : server.listen(path), 'listening')
  return server
}

function hostOf(server: Server): string {
  const address = server.address()
  if (address === null || typeof address === 'string') throw new Error('It listens on no port.')
  return `${address.address}:${address.port}`
}
