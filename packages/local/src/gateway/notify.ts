import { randomBytes } from 'node:crypto'
import { once } from 'node:events'
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import { text } from 'node:stream/consumers'
import * as z from 'zod'
import { listenAt } from '../listening.ts'

export interface NotifyListener {
  /** `POST {"channel": "…"}` to this address; its secret path authorises the caller. */
  url: string
  close: () => Promise<void>
}

const Notification = z.object({ channel: z.string().min(1).max(200) })

/** Functions run on other threads and notify over loopback. */
export async function listenForNotifications(notify: (channel: string) => void): Promise<NotifyListener> {
  const path = `/${randomBytes(32).toString('base64url')}`
  const respond = async (request: IncomingMessage, response: ServerResponse) => {
    if (request.method !== 'POST' || request.url !== path) return response.writeHead(404).end()
    const parsed = Notification.safeParse(
      await text(request)
        .then(JSON.parse)
        .catch(() => undefined),
    )
    if (!parsed.success) return response.writeHead(400).end()
    notify(parsed.data.channel)
    return response.writeHead(204).end()
  }
  const server = createServer({ keepAliveTimeout: 65_000 }, (request, response) => void respond(request, response))
  const { port } = await listenAt(server, '127.0.0.1', 0)
  return {
    url: `http://127.0.0.1:${port}${path}`,
    close: async () => {
      const closed = once(server, 'close')
      server.close()
      server.closeAllConnections()
      await closed
    },
  }
}
