import { once } from 'node:events'
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import { type Connections, watchConnections } from './connections.ts'
import { AwsServiceError, NoResponse } from './error.ts'
import { actionOf, type JsonObject, parseJson, readJson, requireLoopbackHost, requireSigner } from './request.ts'
import type { AwsService } from './service.ts'
import type { Call, CallResponse } from '../port.ts'
import { listenAt } from '../../listening.ts'

export interface AwsServer {
  /** `http://127.0.0.1:<port>`: the `endpoint` of an SDK client. */
  url: string
  /** Performs a call without HTTP. */
  call: Call
  /** Ends long polls and completes running HTTP requests first. */
  close(): Promise<void>
}

interface Exchange {
  service: AwsService
  connections: Connections
  request: IncomingMessage
  response: ServerResponse
}

const keepAliveTimeoutMs = 65_000

/** Listens on loopback; port 0 selects a free port. */
export async function serveAws(service: AwsService, port = 0): Promise<AwsServer> {
  const server = createServer({ keepAliveTimeout: keepAliveTimeoutMs })
  const connections = watchConnections(server)
  server.on('request', (request, response) => void respond({ service, connections, request, response }))
  const address = await listenAt(server, '127.0.0.1', port)

  const end = new AbortController()
  const shutDown = async () => {
    end.abort()
    const closed = once(server.close(), 'close')
    await connections.close()
    await closed
    service.onClose?.()
  }
  let closing: Promise<void> | undefined
  const host = `127.0.0.1:${address.port}`
  return { url: `http://${host}`, call: callOf(service, host, end.signal), close: () => (closing ??= shutDown()) }
}

const callOf =
  (service: AwsService, host: string, end: AbortSignal): Call =>
  async (target, body, abort) => {
    if (end.aborted) throw new NoResponse()
    const signal = abort === undefined ? end : AbortSignal.any([abort, end])
    try {
      const call = { action: actionOf(target, service.target), input: parseJson(body), host, authorization: '', signal }
      return success(await service.respond(call))
    } catch (error) {
      if (error instanceof NoResponse) throw error
      return errorResponse(service, error)
    }
  }

async function respond(exchange: Exchange): Promise<void> {
  const { service, request, response } = exchange
  try {
    requireLoopbackHost(request)
    const control = service.control?.[`${request.method} ${request.url}`]
    if (control === undefined) return await respondToCall(exchange)
    send(response, 'application/json', success(control(await readJson(request))))
  } catch (error) {
    if (error instanceof NoResponse) return void (error.hangs || response.destroy())
    send(response, service.contentType, errorResponse(service, error))
  }
}

async function respondToCall({ service, connections, request, response }: Exchange): Promise<void> {
  requireSigner(request, service.accessKeyId)
  const { host = '', authorization = '' } = request.headers
  const action = actionOf(request.headers['x-amz-target'], service.target)
  const signal = connections.signalOf(response)
  const call = { action, input: await readJson(request), host, authorization, signal }
  const output = await service.respond(call)
  const revert = () => service.onUndelivered?.(call, output)
  if (await connections.hasDisconnected(request)) return revert()
  connections.onUnread(request, response, revert)
  send(response, service.contentType, success(output))
}

const success = (output: JsonObject): CallResponse => ({ statusCode: 200, body: JSON.stringify(output) })

function errorResponse(service: AwsService, error: unknown): CallResponse {
  const awsError = error instanceof AwsServiceError ? error : new AwsServiceError('InternalFailure', String(error), 500)
  const body = { __type: `${service.errorNamespace}${awsError.code}`, message: awsError.message }
  return { statusCode: awsError.status, body: JSON.stringify(body) }
}

function send(response: ServerResponse, contentType: string, { statusCode, body }: CallResponse) {
  const bytes = Buffer.from(body)
  response.writeHead(statusCode, {
    'content-type': contentType,
    'content-length': bytes.length,
    'x-amzn-requestid': crypto.randomUUID(),
  })
  response.end(bytes)
}
