import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import { buffer } from 'node:stream/consumers'
import { listenAt } from '@platform/local/listening'

export interface Work {
  id: string
  payload: Buffer
  deadlineMs: number
  functionArn: string
}

/** Requests of the program. The numbers are response statuses. */
export interface RuntimeListener {
  /** Waits until `give` is called. */
  next: (give: (work: Work) => void) => void
  responded: (id: string, payload: Buffer) => number
  failed: (id: string, payload: Buffer) => number
  initFailed: (payload: Buffer) => number
}

/** The Runtime API (2018-06-01) of one sandbox. */
export interface RuntimeApi {
  address: string
  close: () => void
}

const base = '/2018-06-01/runtime'

/** Programs may wait for work without a time limit. */
export async function serveRuntimeApi(listener: RuntimeListener): Promise<RuntimeApi> {
  const server = createServer({ requestTimeout: 0, keepAliveTimeout: 0 })
  // A killed program breaks its connection.
  server.on('request', (request, response) => void hear(listener, request, response).catch(() => response.destroy()))
  const { port } = await listenAt(server, '127.0.0.1', 0)
  return {
    address: `127.0.0.1:${port}`,
    close: () => {
      server.close()
      server.closeAllConnections()
    },
  }
}

async function hear(listener: RuntimeListener, request: IncomingMessage, response: ServerResponse): Promise<void> {
  const { method, url = '' } = request
  const payload = await buffer(request)
  if (method === 'GET' && url === `${base}/invocation/next`) {
    listener.next((work) => give(response, work))
    return
  }
  const status = method === 'POST' ? statusOf(listener, url, payload) : 404
  response.writeHead(status, { 'content-type': 'application/json' })
  response.end(JSON.stringify({ status: status === 202 ? 'OK' : 'Refused' }))
}

function statusOf(listener: RuntimeListener, url: string, payload: Buffer): number {
  if (url === `${base}/init/error`) return listener.initFailed(payload)
  const [, id = '', end] = /^\/invocation\/([\w-]+)\/(response|error)$/.exec(url.slice(base.length)) ?? []
  if (end === undefined) return 404
  return end === 'response' ? listener.responded(id, payload) : listener.failed(id, payload)
}

function give(response: ServerResponse, { id, payload, deadlineMs, functionArn }: Work): void {
  response.writeHead(200, {
    'content-type': 'application/json',
    'content-length': payload.length,
    'lambda-runtime-aws-request-id': id,
    'lambda-runtime-deadline-ms': String(deadlineMs),
    'lambda-runtime-invoked-function-arn': functionArn,
  })
  response.end(payload)
}
