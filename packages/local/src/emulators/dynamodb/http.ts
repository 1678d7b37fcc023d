import { randomUUID } from 'node:crypto'
import type { IncomingMessage, ServerResponse } from 'node:http'
import { dispatch, isOperation } from './dispatch.ts'
import { NoResponse } from '../http/error.ts'
import type { ControlRoutes } from '../http/service.ts'
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
  readonly #runningRequests = new Set<Promise<void>>()

  constructor(store: Store, metrics: Metrics, control: ControlRoutes, accessKeyId?: string) {
    this.#store = store
    this.#metrics = metrics
    this.#control = control
    this.#accessKeyId = accessKeyId
  }

  /** Never rejects: an error becomes an error response. */
  async respond(request: IncomingMessage, response: ServerResponse): Promise<void> {
    try {
      // A web page could reach this port through a host name that resolves to this machine.
      if (!LOOPBACK_HOST.test(request.headers.host ?? '')) throw serviceError('AccessDeniedException', 'Loopback only')
      const body = await readBody(request)
      const run = this.#run(request, response, body)
      this.#runningRequests.add(run)
      await run.finally(() => this.#runningRequests.delete(run))
    } catch (error) {
      if (error instanceof NoResponse) return void (error.hangs || request.socket.destroy())
      sendError(this.#store, response, error)
    }
  }

  /** Resolves when no operation runs. */
  async idle(): Promise<void> {
    while (this.#runningRequests.size > 0) await Promise.allSettled(this.#runningRequests)
  }

  async #run(request: IncomingMessage, response: ServerResponse, body: string): Promise<void> {
    const control = this.#control[`${request.method} ${request.url}`]
    if (control !== undefined) return send(response, 200, control(parseObject(body || '{}')))
    requireSigner(request, this.#accessKeyId)
    const name = operationName(request)
    send(response, 200, await dispatch(this.#store, this.#metrics, name, parseObject(body)))
  }
}

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

function operationName(request: IncomingMessage): string {
  const [api, name] = String(request.headers['x-amz-target']).split('.')
  if (request.method !== 'POST' || api !== API || !name || !isOperation(name)) {
    throw serviceError('UnknownOperationException')
  }
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

function send(response: ServerResponse, statusCode: number, body: object): void {
  const text = JSON.stringify(body)
  response.writeHead(statusCode, {
    'content-type': JSON_TYPE,
    'content-length': Buffer.byteLength(text),
    'x-amzn-requestid': randomUUID(),
  })
  response.end(text)
}

function sendError(store: Store, response: ServerResponse, error: unknown): void {
  if (response.destroyed) return
  if (isAwsError(error)) return send(response, error.statusCode, error.body)
  store.report(error)
  const type = 'com.amazonaws.dynamodb.v20120810#InternalServerError'
  send(response, 500, { __type: type, message: 'Internal server error' })
}
