import { once } from 'node:events'
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { AwsFault, ConnectionDropped } from './aws-fault.ts'
import { actionOf, type JsonObject, readJson, requireLoopbackHost, requireSigner } from './aws-request.ts'

/** One call of an action by an AWS SDK. */
export interface AwsCall {
  action: string
  input: JsonObject
  host: string
  authorization: string
  /** Aborts when the caller hangs up or the server closes: a long wait should end then. */
  signal: AbortSignal
}

/** A stand-in for one AWS service that speaks an AWS JSON protocol. */
export interface AwsService {
  /** The service's name in `X-Amz-Target`. */
  target: string
  contentType: string
  /** What precedes an error code in `__type`. */
  errorNamespace: string
  /** When given, only requests signed with this access key are answered. */
  accessKeyId?: string | undefined
  /** Performs the call; an `AwsFault` is answered as AWS would. */
  answer(call: AwsCall): JsonObject | Promise<JsonObject>
  /** Takes back an answer whose caller had gone. */
  undelivered?(call: AwsCall, answer: JsonObject): void
  /** Routes beside the AWS protocol, such as `GET /_metrics`. */
  control?: Readonly<Record<string, (input: JsonObject) => JsonObject>>
}

/** A listening stand-in. */
export interface AwsServer {
  /** `http://127.0.0.1:<port>`: the `endpoint` of an SDK client. */
  url: string
  /** Ends long waits, answers what is under way, then closes. */
  close(): Promise<void>
}

const keepAliveTimeoutMs = 65_000

/** Serves an AWS JSON protocol on a loopback port; port 0 takes a free one. */
export async function serveAws(service: AwsService, port = 0): Promise<AwsServer> {
  const calls = new Set<AbortController>()
  const server = createServer({ keepAliveTimeout: keepAliveTimeoutMs }, (request, response) => {
    response.on('finish', () => server.listening || request.socket.end())
    void respond(service, request, response, trackCall(calls, request, response))
  })
  server.listen(port, '127.0.0.1')
  await once(server, 'listening')

  const shut = async () => {
    server.close()
    for (const call of calls) call.abort()
    await once(server, 'close')
  }
  let closing: Promise<void> | undefined
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    close: () => (closing ??= shut()),
  }
}

/** A closed connection shows as `end` of the socket first, and only some turns later as `close` of the response. */
function trackCall(calls: Set<AbortController>, request: IncomingMessage, response: ServerResponse): AbortSignal {
  const call = new AbortController()
  const hangUp = () => call.abort()
  calls.add(call)
  request.socket.once('end', hangUp)
  response.once('close', () => {
    request.socket.off('end', hangUp)
    calls.delete(call)
    hangUp()
  })
  return call.signal
}

async function respond(service: AwsService, request: IncomingMessage, response: ServerResponse, signal: AbortSignal) {
  try {
    requireLoopbackHost(request)
    const control = service.control?.[`${request.method} ${request.url}`]
    if (control === undefined) await respondToCall(service, request, response, signal)
    else await respondToControl(control, request, response)
  } catch (error) {
    if (error instanceof ConnectionDropped) response.destroy()
    else sendFault(service, response, error)
  }
}

async function respondToCall(
  service: AwsService,
  request: IncomingMessage,
  response: ServerResponse,
  signal: AbortSignal,
) {
  requireSigner(request, service.accessKeyId)
  const { host = '', authorization = '' } = request.headers
  const call = {
    action: actionOf(request, service.target),
    input: await readJson(request),
    host,
    authorization,
    signal,
  }
  const answer = await service.answer(call)
  if (request.socket.readableEnded || response.destroyed) return service.undelivered?.(call, answer)
  response.once('close', () => response.writableFinished || service.undelivered?.(call, answer))
  sendJson(response, 200, service.contentType, answer)
}

/** A web page cannot send this content type to another origin unasked, so it cannot turn the switches. */
async function respondToControl(
  control: (input: JsonObject) => JsonObject,
  request: IncomingMessage,
  response: ServerResponse,
) {
  if (request.method !== 'GET' && request.headers['content-type'] !== 'application/json') {
    throw new AwsFault('UnsupportedMediaType', 'Send Content-Type: application/json.', 415)
  }
  sendJson(response, 200, 'application/json', control(await readJson(request)))
}

function sendFault(service: AwsService, response: ServerResponse, error: unknown) {
  const fault = error instanceof AwsFault ? error : new AwsFault('InternalFailure', String(error), 500)
  const body = { __type: `${service.errorNamespace}${fault.code}`, message: fault.message }
  sendJson(response, fault.status, service.contentType, body)
}

function sendJson(response: ServerResponse, status: number, contentType: string, body: JsonObject) {
  const bytes = Buffer.from(JSON.stringify(body))
  response.writeHead(status, {
    'content-type': contentType,
    'content-length': bytes.length,
    'x-amzn-requestid': crypto.randomUUID(),
  })
  response.end(bytes)
}
