import { createHash, timingSafeEqual } from 'node:crypto'
import { once } from 'node:events'
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import * as z from 'zod'
import { listenAt } from './listening.ts'

export interface RpcServer {
  /** `http://127.0.0.1:<port>` */
  url: string
  close: () => Promise<void>
}

export interface RpcRequest {
  body: Buffer
  query: URLSearchParams
}

/** Returns the body of the response, which is sent as JSON; undefined for a response without a body. */
export type RpcHandler = (request: RpcRequest) => Promise<object | undefined>

export interface RpcServerOptions {
  token: string
  /** 0 selects a free port. */
  port: number
  /** Handlers by method and path, such as `GET /list`. */
  calls: Readonly<Record<string, RpcHandler>>
  /** Returns the body of the response with status 422 for an error that the caller may see; undefined for all others. */
  failureOf: (error: unknown) => object | undefined
  onError: (error: unknown) => void
  /** Maximum size of a request body; unlimited by default. */
  maxBytes?: number
}

/**
 * Responds with 401 if the token is missing or wrong, 404 to an unknown call, 400 to an invalid request, 413 to a body
 * that is too large, 422 to a failure of the call and 500 to an internal error.
 */
export async function serveRpc(options: RpcServerOptions): Promise<RpcServer> {
  // There is no time limit for receiving a request, because a busy machine may delay it.
  const server = createServer({ requestTimeout: 0 }, (request, response) => {
    void respond(options, request, response).catch(() => response.destroy())
  })
  const { port } = await listenAt(server, '127.0.0.1', options.port)
  return {
    url: `http://127.0.0.1:${port}`,
    close: async () => {
      const closed = once(server, 'close')
      server.close()
      server.closeAllConnections()
      await closed
    },
  }
}

async function respond(options: RpcServerOptions, request: IncomingMessage, response: ServerResponse): Promise<void> {
  const { token, calls, failureOf, onError, maxBytes = Infinity } = options
  const [path = '', query] = (request.url ?? '').split('?')
  const name = `${request.method} ${path}`
  const call = Object.hasOwn(calls, name) ? calls[name] : undefined
  if (!isEqual(request.headers.authorization, `Bearer ${token}`)) return send(response, 401)
  if (call === undefined) return send(response, 404)
  const body = await readBody(request, maxBytes)
  if (body === undefined) return send(response, 413)
  try {
    const result = await call({ body, query: new URLSearchParams(query) })
    send(response, result === undefined ? 204 : 200, result)
  } catch (error) {
    const failure = failureOf(error)
    if (failure !== undefined) return send(response, 422, failure)
    if (error instanceof z.ZodError || error instanceof SyntaxError) return send(response, 400)
    onError(error)
    send(response, 500)
  }
}

const digest = (text: string): Buffer => createHash('sha256').update(text).digest()

const isEqual = (received = '', expected: string): boolean => timingSafeEqual(digest(received), digest(expected))

async function readBody(request: IncomingMessage, maxBytes: number): Promise<Buffer | undefined> {
  const parts: Buffer[] = []
  let bytes = 0
  for await (const part of request as AsyncIterable<Buffer>) {
    bytes += part.length
    if (bytes <= maxBytes) parts.push(part)
  }
  return bytes > maxBytes ? undefined : Buffer.concat(parts)
}

function send(response: ServerResponse, status: number, body?: object): void {
  const content = body === undefined ? '' : JSON.stringify(body)
  response.writeHead(status, { 'content-type': 'application/json', 'content-length': Buffer.byteLength(content) })
  response.end(content)
}

export const jsonOf = ({ body }: RpcRequest): unknown => JSON.parse(body.toString())
