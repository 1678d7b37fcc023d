import { once } from 'node:events'
import * as z from 'zod'
import type { PlatformProcess } from '../../support/platform.ts'

/** What a platform is started with, so that its collections can be asked for from outside. */
export const inspected = { NODE_OPTIONS: '--inspect=127.0.0.1:0' }

/** The heaps of a platform's process: of its main thread, and of each thread beside it. */
export interface Heaps extends Disposable {
  /** Has all garbage collected; answers what is in use after that, in MB. */
  collect: () => Promise<number>
}

type Method = 'HeapProfiler.collectGarbage' | 'Runtime.getHeapUsage' | 'NodeWorker.enable'

const Message = z.object({
  id: z.number().optional(),
  result: z.unknown().optional(),
  method: z.string().optional(),
  params: z.object({ sessionId: z.string(), message: z.string().optional() }).optional().catch(undefined),
})
const Usage = z.object({ usedSize: z.number(), backingStorageSize: z.number() })

const nothing: z.infer<typeof Usage> = { usedSize: 0, backingStorageSize: 0 }

const MB = 1024 * 1024

/** A conversation with the inspector of one thread. */
class Session {
  readonly #write: (text: string) => void
  readonly #waiting = new Map<number, (result: unknown) => void>()
  #lastId = 0
  #hasEnded = false

  constructor(write: (text: string) => void) {
    this.#write = write
  }

  ask(method: Method, params: object = {}): Promise<unknown> {
    if (this.#hasEnded) return Promise.resolve(nothing)
    const id = ++this.#lastId
    this.#write(JSON.stringify({ id, method, params }))
    return new Promise((resolve) => this.#waiting.set(id, resolve))
  }

  settle({ id, result }: z.infer<typeof Message>): void {
    if (id === undefined) return
    this.#waiting.get(id)?.(result)
    this.#waiting.delete(id)
  }

  /** The thread has ended: whoever waits for an answer of it hears that nothing is in use. */
  end(): void {
    this.#hasEnded = true
    for (const resolve of this.#waiting.values()) resolve(nothing)
  }
}

/** Speaks to the inspector of a platform that was started with `inspected`. */
export async function heapsOf(platform: PlatformProcess): Promise<Heaps> {
  const [, url = ''] = await platform.writes(/Debugger listening on (ws:\S+)/)
  const socket = new WebSocket(url)
  await once(socket, 'open')
  const main = new Session((text) => socket.send(text))
  const threads = new Map<string, Session>()
  const throughMain = (sessionId: string) => (message: string) =>
    socket.send(JSON.stringify({ id: 0, method: 'NodeWorker.sendMessageToWorker', params: { sessionId, message } }))
  socket.addEventListener('message', ({ data }) => {
    const message = Message.parse(JSON.parse(String(data)))
    const { method, params } = message
    if (params === undefined) return main.settle(message)
    const { sessionId } = params
    if (method === 'NodeWorker.attachedToWorker') threads.set(sessionId, new Session(throughMain(sessionId)))
    if (method === 'NodeWorker.receivedMessageFromWorker')
      threads.get(sessionId)?.settle(Message.parse(JSON.parse(params.message ?? '')))
    if (method === 'NodeWorker.detachedFromWorker') {
      threads.get(sessionId)?.end()
      threads.delete(sessionId)
    }
  })
  // A platform that dies is noticed by whoever looks at it next.
  socket.addEventListener('close', () => [main, ...threads.values()].forEach((session) => session.end()))
  await main.ask('NodeWorker.enable', { waitForDebuggerOnStart: false })
  const collect = async () => {
    if (threads.size === 0) throw new Error('The inspector tells of no thread beside the main one.')
    const used = await Promise.all([main, ...threads.values()].map(usedAfterCollection))
    return used.reduce((sum, bytes) => sum + bytes, 0) / MB
  }
  return { collect, [Symbol.dispose]: () => socket.close() }
}

async function usedAfterCollection(session: Session): Promise<number> {
  await session.ask('HeapProfiler.collectGarbage')
  const { usedSize, backingStorageSize } = Usage.parse(await session.ask('Runtime.getHeapUsage'))
  return usedSize + backingStorageSize
}
