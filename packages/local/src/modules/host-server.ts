import { createHash, timingSafeEqual } from 'node:crypto'
import { once } from 'node:events'
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import { json } from 'node:stream/consumers'
import { DeployRequest, type HostFailure, RemoveRequest, TidyRequest } from '@platform/modules/runtime/host-protocol'
import { type ModuleRuntime, RuntimeFailure } from '@platform/modules/runtime/port'
import * as z from 'zod'
import { listenAt } from '../listening.ts'

/** What the functions of the same platform may ask of its runtime. See host-protocol.ts for the calls. */
export interface HostServer {
  /** `http://127.0.0.1:<port>` */
  url: string
  close: () => Promise<void>
}

export interface HostServerOptions {
  runtime: ModuleRuntime
  /** Whoever has it may ask. */
  token: string
  /** 0 takes a free one. */
  port: number
  /** Hears of the token of a deployment before the runtime is asked to start it. */
  onToken: (deploymentId: string, token: string) => void
  onError: (error: unknown) => void
}

type Call = (body: unknown) => Promise<object | undefined>

/** Serves the runtime on loopback. */
export async function serveHost(options: HostServerOptions): Promise<HostServer> {
  const { runtime, onToken } = options
  const calls: Record<string, Call> = {
    'POST /deploy': async (body) => {
      const { assignment, token } = DeployRequest.parse(body)
      onToken(assignment.id, token)
      return runtime.deploy(assignment)
    },
    'POST /remove': async (body) => {
      const { deployment, graceMs } = RemoveRequest.parse(body)
      await runtime.remove(deployment, graceMs)
      return undefined
    },
    'POST /tidy': async (body) => {
      await runtime.tidy?.(TidyRequest.parse(body).digests)
      return undefined
    },
    'GET /list': async () => ({ items: await runtime.list() }),
  }
  // A removal takes as long as the module's grace.
  const server = createServer({ requestTimeout: 0 }, (request, response) => {
    void respond(calls, options, request, response).catch(() => response.destroy())
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

async function respond(
  calls: Record<string, Call>,
  { token, onError }: HostServerOptions,
  request: IncomingMessage,
  response: ServerResponse,
): Promise<void> {
  const name = `${request.method} ${request.url}`
  const call = Object.hasOwn(calls, name) ? calls[name] : undefined
  if (!isSame(request.headers.authorization, `Bearer ${token}`)) return send(response, 401)
  if (call === undefined) return send(response, 404)
  try {
    const answer = await call(request.method === 'GET' ? undefined : await json(request))
    send(response, answer === undefined ? 204 : 200, answer)
  } catch (error) {
    if (error instanceof RuntimeFailure) return send(response, 422, failureOf(error))
    if (error instanceof z.ZodError || error instanceof SyntaxError) return send(response, 400)
    onError(error)
    send(response, 500)
  }
}

const failureOf = ({ problem, message }: RuntimeFailure): z.infer<typeof HostFailure> => ({ problem, message })

const digest = (text: string): Buffer => createHash('sha256').update(text).digest()

const isSame = (given = '', expected: string): boolean => timingSafeEqual(digest(given), digest(expected))

function send(response: ServerResponse, status: number, body?: object): void {
  const content = body === undefined ? '' : JSON.stringify(body)
  response.writeHead(status, { 'content-type': 'application/json', 'content-length': Buffer.byteLength(content) })
  response.end(content)
}
