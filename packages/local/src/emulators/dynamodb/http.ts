import { randomUUID } from 'node:crypto'
import type { IncomingMessage, ServerResponse } from 'node:http'
import { dispatch, isOperation } from './dispatch.ts'
import { NoResponse } from '../http/error.ts'
import type { ControlRoutes } from '../http/service.ts'
import type { CallResponse } from '../port.ts'
import { AwsError, isAwsError, serviceError } from './errors.ts'
import { parseObject } from './json.ts'
import type { Metrics } from './metrics.ts'
import type { Store } from './store.ts'

const MAX_BODY_BYTES = 16 * 1024 * 1024
const API = 'DynamoDB_20120810'
const LOOPBACK_HOST = /^(127\.0\.0\.1|localhost|\[::1\])(:\d+)?$/
const SIGNER = /^AWS4-HMAC-SHA256 Credential=([^/,\s]+)\//
const JSON_TYPE = 'application/x-amz-json-1.0'

export class Responder {
  readonly #store: Store
  readonly #metrics: Metrics
  readonly #control: ControlRoutes
  readonly #accessKeyId: string | undefined
  readonly #runningCalls = new Set<Promise<CallResponse>>()

  constructor(store: Store, metrics: Metrics, control: ControlRoutes, accessKeyId?: string) {
    this.#store = store
    this.#metrics = metrics
    this.#control = control
    this.#accessKeyId = accessKeyId
  }

  /** Never rejects: an error becomes an error response, except `NoResponse`, which leaves the call unanswered. */
  async respond(request: IncomingMessage, response: ServerResponse): Promise<void> {
    try {
      send(response, await this.#respond(request))
    } catch (error) {
      if (error instanceof NoResponse) return void (error.hangs || request.socket.destroy())
      if (!response.destroyed) send(response, this.#errorResponse(error))
    }
  }

  /** See `Call`: any error but `NoResponse` becomes an error response. */
  async call(target: string, body: string): Promise<CallResponse> {
    const runningCall = this.#perform(target, body)
    this.#runningCalls.add(runningCall)
    return runningCall.finally(() => this.#runningCalls.delete(runningCall))
  }

  /** Resolves when no operation runs. */
  async untilIdle(): Promise<void> {
    while (this.#runningCalls.size > 0) await Promise.allSettled(this.#runningCalls)
  }

  async #respond(request: IncomingMessage): Promise<CallResponse> {
    // A web page could reach this port through a host name that resolves to this machine.
    if (!LOOPBACK_HOST.test(request.headers.host ?? '')) throw serviceError('AccessDeniedException', 'Loopback only')
    const body = await readBody(request)
    const control = this.#control[`${request.method} ${request.url}`]
    if (control !== undefined) return success(control(parseObject(body || '{}')))
    requireSigner(request, this.#accessKeyId)
    if (request.method !== 'POST') throw serviceError('UnknownOperationException')
    return this.call(String(request.headers['x-amz-target']), body)
  }

  async #perform(target: string, body: string): Promise<CallResponse> {
    try {
      return success(await dispatch(this.#store, this.#metrics, operationName(target), parseObject(body)))
    } catch (error) {
      if (error instanceof NoResponse) throw error
      return this.#errorResponse(error)
    }
  }

  #errorResponse(error: unknown): CallResponse {
    if (isAwsError(error)) return { statusCode: error.statusCode, body: JSON.stringify(error.body) }
    this.#store.report(error)
    const type = 'com.amazonaws.dynamodb.v20120810#InternalServerError'
    return { statusCode: 500, body: JSON.stringify({ __type: type, message: 'Internal server error' }) }
  }
}

const success = (output: object): CallResponse => ({ statusCode: 200, body: JSON.stringify(output) })

/** Checks the access key of the signature, but not the signature itself. */
function requireSigner(request: IncomingMessage, accessKeyId: string | undefined): void {
  const signer = SIGNER.exec(request.headers.authorization ?? '')?.[1]
  if (signer === undefined) {
    throw serviceError('MissingAuthenticationTokenException', 'Request is missing Authentication Token')
  }
  if (accessKeyId !== undefined && signer !== accessKeyId) {
    throw serviceError('UnrecognizedClientException', 'The security token included in the request is invalid.')
  }
}

function operationName(target: string): string {
  const [api, name] = target.split('.')
  if (api !== API || !name || !isOperation(name)) throw serviceError('UnknownOperationException')
  return name
}

function readBody(request: IncomingMessage): Promise<string> {
  return new Promise((resolve, reject) => {
    const chunks: Buffer[] = []
    let bytes = 0
    request.on('data', (chunk: Buffer) => {
      bytes += chunk.length
      if (bytes > MAX_BODY_BYTES) reject(new AwsError('RequestEntityTooLargeException', 'Too large', {}, 413))
      else chunks.push(chunk)
    })
    request.on('end', () => resolve(Buffer.concat(chunks).toString()))
    request.on('error', reject)
  })
}

function send(response: ServerResponse, { statusCode, body }: CallResponse): void {
  response.writeHead(statusCode, {
    'content-type': JSON_TYPE,
    'content-length': Buffer.byteLength(body),
    'x-amzn-requestid': randomUUID(),
  })
  response.end(body)
}
