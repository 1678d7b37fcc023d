import { once } from 'node:events'
import { setTimeout as delay } from 'node:timers/promises'
import type { MessagePort } from 'node:worker_threads'
import { type AwsTransport, awsTimeouts } from '@platform/core/aws/sdk'
import { NoResponse } from './http/error.ts'

// Calls of AWS services over a message port, which take less CPU time than HTTP with signatures.

interface CallRequest {
  id: number
  /** The header `X-Amz-Target`. */
  target: string
  body: string
  /** Whether an `AbortRequest` may follow. */
  isAbortable: boolean
}

/** Ends a long poll. The call still gets a response. */
interface AbortRequest {
  abortId: number
}

export interface CallResponse {
  statusCode: number
  body: string
}

/** Calls an operation such as `DynamoDB_20120810.GetItem`. An error has the name of the SDK's exception. */
export type CallOperation = (target: string, input: object, signal?: AbortSignal) => Promise<any>

/** Throws `NoResponse` if the caller gets no response. */
export type Call = (target: string, body: string, signal?: AbortSignal) => Promise<CallResponse>

type PortResponse = { id: number; response: CallResponse | 'disconnected' }

export function serveCalls(port: MessagePort, call: Call): void {
  const controllerById = new Map<number, AbortController>()
  const respond = async ({ id, target, body, isAbortable }: CallRequest) => {
    if (isAbortable) controllerById.set(id, new AbortController())
    const signal = controllerById.get(id)?.signal
    let response = await call(target, body, signal).catch(unansweredReason)
    if (response === 'hangs') {
      if (signal === undefined) return
      if (!signal.aborted) await once(signal, 'abort')
      response = 'disconnected'
    }
    controllerById.delete(id)
    // oxlint-disable-next-line unicorn/require-post-message-target-origin -- a port is not a window
    port.postMessage({ id, response } satisfies PortResponse)
  }
  port.on('message', (request: CallRequest | AbortRequest) => {
    if ('abortId' in request) controllerById.get(request.abortId)?.abort()
    else void respond(request)
  })
  port.on('close', () => {
    for (const controller of controllerById.values()) controller.abort()
  })
  port.unref()
}

function unansweredReason(error: unknown): 'disconnected' | 'hangs' {
  if (!(error instanceof NoResponse)) console.error(error)
  return error instanceof NoResponse && error.hangs ? 'hangs' : 'disconnected'
}

/** Further calls wait in the client. A call that timed out does not count, although it may still run. */
const maxConcurrency = 50

/**
 * Calls the emulators at the other end of the port. A call fails with `TimeoutError` after the time limit, which
 * includes the wait for other calls. Long polls need the time limit `none`.
 */
export function callOver(port: MessagePort, timeoutMs: number | 'none' = awsTimeouts.requestTimeout): CallOperation {
  const pendingCalls = new Map<number, PromiseWithResolvers<CallResponse>>()
  const waitingStarts = new Set<() => void>()
  let [lastId, runningCount, isClosed] = [0, 0, false]
  port.on('message', ({ id, response }: PortResponse) => {
    if (response === 'disconnected') pendingCalls.get(id)?.reject(disconnectedError())
    else pendingCalls.get(id)?.resolve(response)
  })
  port.on('close', () => {
    isClosed = true
    for (const { reject } of pendingCalls.values()) reject(disconnectedError())
  })
  port.unref()

  const send = (request: CallRequest | AbortRequest) => {
    // oxlint-disable-next-line unicorn/require-post-message-target-origin -- a port is not a window
    port.postMessage(request)
  }

  const call = async (target: string, body: string, signal: AbortSignal | undefined): Promise<CallResponse> => {
    if (isClosed || signal?.aborted) throw disconnectedError()
    const id = ++lastId
    const response = Promise.withResolvers<CallResponse>()
    pendingCalls.set(id, response)
    const start = () => {
      waitingStarts.delete(start)
      runningCount++
      send({ id, target, body, isAbortable: signal !== undefined })
    }
    const expire = () => {
      if (signal !== undefined && !waitingStarts.has(start)) send({ abortId: id })
      response.reject(timedOutError())
    }
    const abort = () => (waitingStarts.has(start) ? response.reject(disconnectedError()) : send({ abortId: id }))
    signal?.addEventListener('abort', abort)
    const timer = timeoutMs === 'none' ? undefined : setTimeout(expire, timeoutMs)
    if (runningCount < maxConcurrency) start()
    else waitingStarts.add(start)
    try {
      return await response.promise
    } finally {
      clearTimeout(timer)
      signal?.removeEventListener('abort', abort)
      pendingCalls.delete(id)
      if (!waitingStarts.delete(start)) runningCount--
      const [nextStart] = waitingStarts
      if (runningCount < maxConcurrency) nextStart?.()
    }
  }
  return async (target, input, signal) => {
    const { statusCode, body } = await call(target, JSON.stringify(input, binaryReplacer), signal)
    const output = binaryPattern.test(body) ? JSON.parse(body, binaryReviver) : JSON.parse(body)
    if (statusCode === 200) return output
    const { message = output.Message, Item, CancellationReasons } = output
    const name = String(output['__type']).split('#').at(-1)
    const $metadata = { httpStatusCode: statusCode }
    throw Object.assign(new Error(message), { name, Item, CancellationReasons, $metadata })
  }
}

const binaryPattern = /"(?:B|BinaryValue)":"/

/**
 * JSON represents binary values in Base64. Sets of binary values are not supported. Reads the original value, because
 * buffers have a `toJSON` of their own.
 */
function binaryReplacer(this: Record<string, unknown>, key: string, value: unknown): unknown {
  const original = this[key]
  return original instanceof Uint8Array ? Buffer.from(original).toString('base64') : value
}

const binaryReviver = (key: string, value: unknown): unknown =>
  (key === 'B' || key === 'BinaryValue') && typeof value === 'string'
    ? new Uint8Array(Buffer.from(value, 'base64'))
    : value

const serviceByClient: Readonly<Record<string, string>> = {
  DynamoDBClient: 'DynamoDB_20120810',
  SQSClient: 'AmazonSQS',
  SecretsManagerClient: 'secretsmanager',
}

/**
 * Performs the commands of a client with `call`. Skips the steps of the SDK, which take most of the CPU time of a
 * call. Repeats a command after the errors of the emulators after which the SDK would repeat it. Ignores abort signals.
 */
export const transportOver =
  (call: CallOperation): AwsTransport =>
  ({ config, middlewareStack }) => {
    middlewareStack.add(
      (_next, { clientName = '', commandName = '' }) => {
        const target = `${serviceByClient[clientName]}.${commandName.replace(/Command$/, '')}`
        return async ({ input }) => {
          const maxAttempts = await config.maxAttempts()
          for (let attempts = 1; ; attempts++) {
            try {
              return { output: await call(target, input), response: {} }
            } catch (error) {
              if (!(error instanceof Error)) throw error
              if (attempts >= maxAttempts || !isRetryable(error))
                throw Object.assign(error, { $metadata: { attempts } })
              await delay(Math.random() * maxRetryDelayMs(attempts))
            }
          }
        }
      },
      { step: 'initialize', priority: 'low', name: 'emulators' },
    )
  }

const maxRetryDelayMs = (attempts: number): number => 50 * 2 ** attempts

const isRetryable = (error: Error & { code?: string; $metadata?: { httpStatusCode: number } }): boolean =>
  error.name === 'TimeoutError' ||
  error.code === 'ECONNRESET' ||
  (error.$metadata?.httpStatusCode ?? 0) >= 500 ||
  /Throttling|ThroughputExceeded|RequestLimitExceeded|TransactionInProgress/.test(error.name)

const disconnectedError = () => Object.assign(new Error('The emulator closed the connection.'), { code: 'ECONNRESET' })
const timedOutError = () => Object.assign(new Error('The emulator did not respond in time.'), { name: 'TimeoutError' })
