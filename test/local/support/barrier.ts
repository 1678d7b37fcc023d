import { EventEmitter, once } from 'node:events'
import { createServer } from 'node:http'
import { text } from 'node:stream/consumers'
import { listenAt } from '@platform/local/listening'

export interface Barrier extends AsyncDisposable {
  /** Returns source code that reports the value of an expression, and then waits until the barrier is open. */
  report: (name: string, expression?: string) => string
  /** Resolves with the values reported under a name as soon as there are `count` (by default one). */
  waitForReports: (name: string, count?: number) => Promise<unknown[]>
  open: () => void
}

export async function startBarrier(): Promise<Barrier> {
  const values = new Map<string, unknown[]>()
  const events = new EventEmitter()
  const opened = Promise.withResolvers<void>()
  const server = createServer((request, response) => {
    void text(request).then((body) => {
      const reportName = request.url?.slice(1) ?? ''
      values.set(reportName, [...(values.get(reportName) ?? []), JSON.parse(body)])
      events.emit('report')
      return opened.promise.then(() => response.end())
    })
  })
  const { port } = await listenAt(server, '127.0.0.1', 0)

  const waitForReports = async (name: string, count = 1) => {
    for (;;) {
      const reported = values.get(name) ?? []
      if (reported.length >= count) return reported
      await once(events, 'report')
    }
  }
  const close = async () => {
    server.close()
    server.closeAllConnections()
    await once(server, 'close')
  }
  return {
    report: (name, expression = 'null') =>
      `await fetch('http://127.0.0.1:${port}/${name}', { method: 'POST', body: JSON.stringify(${expression}) })`,
    waitForReports,
    open: opened.resolve,
    [Symbol.asyncDispose]: close,
  }
}
