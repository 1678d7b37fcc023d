import { once } from 'node:events'
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import { watchConnections } from '@platform/local/emulators/http/connections'
import { AwsServiceError } from '@platform/local/emulators/http/error'
import { readJson, requireLoopbackHost, requireSigner } from '@platform/local/emulators/http/request'
import { listenAt } from '@platform/local/listening'
import { invoke } from './invoke.ts'
import type { Lambda } from './lambda.ts'
import { maximumPayloadBytes } from './exchange.ts'
import { requestTooLarge } from './refusals.ts'
import { routeOf, type RouteMatch } from './routes.ts'

/** A zip of the largest size in base64, with room for the rest. */
const maximumRequestBytes = 70 * 1024 * 1024

interface Answer {
  status: number
  headers?: Record<string, string>
  body: Buffer
}

/** `close` completes requests that have arrived. */
export async function serveLambda(lambda: Lambda, port: number, accessKeyId: string | undefined) {
  const server = createServer({ keepAliveTimeout: 65_000 })
  const connections = watchConnections(server)
  server.on('request', (request, response) => {
    answer(lambda, request, accessKeyId)
      .catch(faultAnswer)
      .then((given) => send(response, given))
      .catch(() => response.destroy())
  })
  const address = await listenAt(server, '127.0.0.1', port)
  return {
    url: `http://127.0.0.1:${address.port}`,
    close: async () => {
      const closed = once(server.close(), 'close')
      await connections.close()
      await closed
    },
  }
}

async function answer(lambda: Lambda, request: IncomingMessage, accessKeyId: string | undefined): Promise<Answer> {
  requireLoopbackHost(request)
  requireSigner(request, accessKeyId)
  const match = routeOf(request.method ?? '', request.url ?? '')
  const { performed, status, input } = match
  if (performed === 'invoke') return invoked(lambda, request, match)
  const output = await performed(lambda, { ...(await readJson(request, maximumRequestBytes)), ...input })
  return { status, body: status === 204 ? Buffer.alloc(0) : Buffer.from(JSON.stringify(output)) }
}

async function invoked(lambda: Lambda, request: IncomingMessage, { input }: RouteMatch): Promise<Answer> {
  const { FunctionName, Qualifier } = input
  const { payload, isError, version, status } = await invoke(lambda, {
    FunctionName: String(FunctionName),
    Qualifier: Qualifier === undefined ? undefined : String(Qualifier),
    type: String(request.headers['x-amz-invocation-type'] ?? 'RequestResponse'),
    payload: await readPayload(request),
  })
  const headers = { 'x-amz-executed-version': version, ...(isError && { 'x-amz-function-error': 'Unhandled' }) }
  return { status, headers, body: payload }
}

async function readPayload(request: IncomingMessage): Promise<Buffer> {
  const chunks: Buffer[] = []
  let sizeBytes = 0
  for await (const chunk of request as AsyncIterable<Buffer>) {
    sizeBytes += chunk.length
    if (sizeBytes > 2 * maximumPayloadBytes) throw requestTooLarge(maximumPayloadBytes)
    chunks.push(chunk)
  }
  return Buffer.concat(chunks)
}

function faultAnswer(error: unknown): Answer {
  const fault = error instanceof AwsServiceError ? error : new AwsServiceError('ServiceException', String(error), 500)
  const Type = fault.status < 500 ? 'User' : 'Service'
  const body = Buffer.from(JSON.stringify({ Type, Message: fault.message, message: fault.message }))
  return { status: fault.status, headers: { 'x-amzn-errortype': fault.code }, body }
}

function send(response: ServerResponse, { status, headers, body }: Answer): void {
  const common = { 'content-type': 'application/json', 'x-amzn-requestid': crypto.randomUUID() }
  response.writeHead(status, { ...common, 'content-length': body.length, ...headers })
  response.end(body)
}
