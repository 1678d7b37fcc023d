import { once } from 'node:events'
import { createServer, type IncomingMessage, request, type ServerResponse } from 'node:http'
import { buffer } from 'node:stream/consumers'

/** One request and its answer, as they went over the wire. */
export interface Exchange {
  method: string
  /** As it was asked for, with its query. */
  target: string
  asked: { headers: string[]; body: string }
  status: number
  told: { headers: string[]; body: string }
}

/** Stands between clients and the platform, changes nothing, and keeps all that passes. */
export interface Recorder extends AsyncDisposable {
  url: string
  exchanges: Exchange[]
}

export async function startRecorder(platformUrl: string): Promise<Recorder> {
  const exchanges: Exchange[] = []
  const { hostname, port } = new URL(platformUrl)
  const server = createServer((incoming, outgoing) => {
    pass(incoming, outgoing, { hostname, port })
      .then((exchange) => exchanges.push(exchange))
      .catch(() => outgoing.destroy())
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  const address = server.address()
  const ownPort = typeof address === 'object' ? address?.port : undefined
  const close = async () => {
    server.closeAllConnections()
    server.close()
    await once(server, 'close')
  }
  return { url: `http://127.0.0.1:${ownPort}`, exchanges, [Symbol.asyncDispose]: close }
}

interface Address {
  hostname: string
  port: string
}

async function pass(
  incoming: IncomingMessage,
  outgoing: ServerResponse,
  { hostname, port }: Address,
): Promise<Exchange> {
  const { method = '', url: target = '', rawHeaders } = incoming
  const body = await buffer(incoming)
  const onward = request({ hostname, port, method, path: target, headers: rawHeaders, agent: false })
  outgoing.on('close', () => onward.destroy())
  // A connection may break after its answer, too.
  onward.on('error', () => undefined)
  onward.end(body)
  const [answer]: IncomingMessage[] = await once(onward, 'response')
  if (answer === undefined) throw new Error('There was no answer.')
  const answered = await buffer(answer)
  const status = answer.statusCode ?? 0
  outgoing.writeHead(status, answer.rawHeaders)
  outgoing.end(answered)
  return {
    method,
    target,
    asked: { headers: rawHeaders, body: body.toString('latin1') },
    status,
    told: { headers: answer.rawHeaders, body: answered.toString('latin1') },
  }
}
