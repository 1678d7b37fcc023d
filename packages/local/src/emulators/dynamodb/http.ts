import { randomUUID } from 'node:crypto'
import type { IncomingMessage, ServerResponse } from 'node:http'
import { answerControl, isControlPath } from './control.ts'
import { dispatch, isOperation } from './dispatch.ts'
import { AwsError, isAwsError, serviceError } from './errors.ts'
import { parseObject } from './json.ts'
import type { Metrics } from './metrics.ts'
import type { Store } from './store.ts'

const MAX_BODY_BYTES = 16 * 1024 * 1024
const API = 'DynamoDB_20120810'
const LOOPBACK_HOST = /^(127\.0\.0\.1|localhost|\[::1\])(:\d+)?$/
const SIGNER = /^AWS4-HMAC-SHA256 Credential=([^/,\s]+)\//
const JSON_TYPE = 'application/x-amz-json-1.0'

/** Answers the DynamoDB protocol, and the control paths beside it. */
export class Responder {
  readonly #store: Store
  readonly #metrics: Metrics
  readonly #accessKeyId: string | undefined
  readonly #running = new Set<Promise<void>>()

  constructor(store: Store, metrics: Metrics, accessKeyId?: string) {
    this.#store = store
    this.#metrics = metrics
    this.#accessKeyId = accessKeyId
  }

  /** Answers one request, come what may. */
  async respond(request: IncomingMessage, response: ServerResponse): Promise<void> {
    try {
      // A web page could reach this port under a name of its own that it points at this machine.
      if (!LOOPBACK_HOST.test(request.headers.host ?? '')) throw serviceError('AccessDeniedException', 'Loopback only')
      const body = await readBody(request)
      const running = this.#run(request, response, body)
      this.#running.add(running)
      await running.finally(() => this.#running.delete(running))
    } catch (error) {
      sendError(this.#store, response, error)
    }
  }

  /** Resolves when no operation is running. */
  async idle(): Promise<void> {
    while (this.#running.size > 0) await Promise.allSettled(this.#running)
  }

  async #run(request: IncomingMessage, response: ServerResponse, body: string): Promise<void> {
    if (isControlPath(request.url)) {
      if (request.method !== 'GET' && this.#accessKeyId !== undefined) requireSigner(request, this.#accessKeyId)
      return send(response, 200, answerControl(this.#store, this.#metrics, request, body))
    }
    requireSigner(request, this.#accessKeyId)
    const name = operationName(request)
    const fate = await dispatch(this.#store, this.#metrics, name, parseObject(body))
    if (fate === 'broken') request.socket.destroy()
    else if (fate !== 'silent') send(response, 200, fate.answer)
  }
}

/** Reads the access key out of a signature; the signature itself is not verified. */
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

function send(response: ServerResponse, statusCode: number, answer: object): void {
  const text = JSON.stringify(answer)
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
