import { once } from 'node:events'
import { createServer, type IncomingMessage, request, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { buffer } from 'node:stream/consumers'

/** Loses or delays the response, or responds without forwarding the request. */
export type Fault =
  | 'lose the answer'
  | { holdUntil: Promise<unknown> }
  | { status: number; headers?: Record<string, string>; body?: string }

export interface Proxy extends AsyncDisposable {
  url: string
  seen: string[]
  /** Applies a fault to the next requests with this prefix of method and path. */
  spoil: (begin: string, ...faults: Fault[]) => void
}

export async function startProxy(target: string): Promise<Proxy> {
  const seen: string[] = []
  const planned: { begin: string; fault: Fault }[] = []
  const server = createServer((incoming, outgoing) => {
    const line = `${incoming.method} ${incoming.url}`
    seen.push(line)
    const index = planned.findIndex(({ begin }) => line.startsWith(begin))
    const [plan] = index < 0 ? [] : planned.splice(index, 1)
    void answer(target, incoming, outgoing, plan?.fault)
  }).listen(0, '127.0.0.1')
  await once(server, 'listening')
  // oxlint-disable-next-line typescript/no-unsafe-type-assertion
  const { port } = server.address() as AddressInfo
  return {
    url: `http://127.0.0.1:${port}`,
    seen,
    spoil: (begin, ...faults) => planned.push(...faults.map((fault) => ({ begin, fault }))),
    async [Symbol.asyncDispose]() {
      server.closeAllConnections()
      server.close()
    },
  }
}

async function answer(
  target: string,
  incoming: IncomingMessage,
  outgoing: ServerResponse,
  fault?: Fault,
): Promise<void> {
  const body = await buffer(incoming)
  if (typeof fault === 'object' && 'status' in fault) {
    outgoing.writeHead(fault.status, { 'content-type': 'application/json', ...fault.headers }).end(fault.body)
    return
  }
  const { method, headers } = incoming
  const onward = request(new URL(incoming.url ?? '/', target), { method, headers, agent: false })
  onward.end(body)
  const [response]: IncomingMessage[] = await once(onward, 'response')
  const text = await buffer(response!)
  if (typeof fault === 'object') await fault.holdUntil
  if (fault === 'lose the answer') outgoing.destroy()
  else outgoing.writeHead(response!.statusCode!, { ...response!.headers, 'content-length': text.length }).end(text)
}
