import { EventEmitter, once } from 'node:events'
import { createServer } from 'node:http'
import { text } from 'node:stream/consumers'
import { listenAt } from '@platform/local/listening'

/** Where functions and tests meet. */
export interface Gate extends AsyncDisposable {
  /** A statement for a function: it tells the gate a value under a name, and goes on when the gate is open. */
  pass: (name: string, expression?: string) => string
  /** Resolves with the values told under a name, once there are as many. */
  arrived: (name: string, count?: number) => Promise<unknown[]>
  open: () => void
}

/** A gate that is closed until it is opened. */
export async function startGate(): Promise<Gate> {
  const told = new Map<string, unknown[]>()
  const arrival = new EventEmitter()
  const opened = Promise.withResolvers<void>()
  const server = createServer((request, response) => {
    void text(request).then((sent) => {
      const name = request.url?.slice(1) ?? ''
      told.set(name, [...(told.get(name) ?? []), JSON.parse(sent)])
      arrival.emit('arrival')
      return opened.promise.then(() => response.end())
    })
  })
  const { port } = await listenAt(server, '127.0.0.1', 0)

  const arrived = async (name: string, count = 1) => {
    for (;;) {
      const values = told.get(name) ?? []
      if (values.length >= count) return values
      await once(arrival, 'arrival')
    }
  }
  const close = async () => {
    server.close()
    server.closeAllConnections()
    await once(server, 'close')
  }
  return {
    pass: (name, expression = 'null') =>
      `await fetch('http://127.0.0.1:${port}/${name}', { method: 'POST', body: JSON.stringify(${expression}) })`,
    arrived,
    open: opened.resolve,
    [Symbol.asyncDispose]: close,
  }
}
