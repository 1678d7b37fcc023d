import { once } from 'node:events'
import { createServer } from 'node:http'

/** A receiver of webhooks, which answers 204. */
export async function startReceiver(): Promise<AsyncDisposable & { host: string }> {
  const server = createServer((incoming, outgoing) => {
    incoming.resume().on('end', () => outgoing.writeHead(204).end())
  })
  await once(server.listen(0, '127.0.0.1'), 'listening')
  const address = server.address()
  const port = typeof address === 'object' ? address?.port : 0
  const close = async () => {
    server.closeAllConnections()
    await new Promise((closed) => server.close(closed))
  }
  return { host: `127.0.0.1:${port}`, [Symbol.asyncDispose]: close }
}
