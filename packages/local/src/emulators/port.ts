import type { MessagePort } from 'node:worker_threads'
import { type AwsTransport, awsTimeouts } from '@platform/core/aws/sdk'
import { NoResponse } from './http/error.ts'

/** The protocol of AWS over a message port, which takes less than half of the CPU time of HTTP with signatures. */
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

/** Throws `NoResponse` if the caller gets no response. */
export type Call = (target: string, body: string, signal?: AbortSignal) => Promise<CallResponse>

type PortResponse = { id: number; response: CallResponse | 'disconnected' }

/** Performs the calls that arrive at the port. */
export function serveCalls(port: MessagePort, call: Call): void {
  const abortable = new Map<number, AbortController>()
  const respond = async ({ id, target, body, isAbortable }: CallRequest) => {
    if (isAbortable) abortable.set(id, new AbortController())
    const response = await call(target, body, abortable.get(id)?.signal).catch(unanswered)
    abortable.delete(id)
    // oxlint-disable-next-line unicorn/require-post-message-target-origin -- a port is not a window
    if (response !== undefined) port.postMessage({ id, response } satisfies PortResponse)
  }
  port.on('message', (request: CallRequest | AbortRequest) => {
    if ('abortId' in request) abortable.get(request.abortId)?.abort()
    else void respond(request)
  })
  port.unref()
}

function unanswered(error: unknown): 'disconnected' | undefined {
  if (error instanceof NoResponse && error.hangs) return undefined
  return 'disconnected'
}

/** As for HTTP: excess calls wait in the client, where their time limit has not started. */
const maximumConcurrency = 50

/**
 * Lets SDK clients call the emulators at the other end of the port, with the same errors and default time limit as over
 * HTTP. Long polls need the time limit `none`.
 */
export function transportOver(
  port: MessagePort,
  timeoutMs: number | 'none' = awsTimeouts.requestTimeout,
): AwsTransport {
  const pending = new Map<number, PromiseWithResolvers<CallResponse>>()
  let lastId = 0
  let isClosed = false
  port.on('message', ({ id, response }: PortResponse) => {
    if (response === 'disconnected') pending.get(id)?.reject(disconnected())
    else pending.get(id)?.resolve(response)
  })
  port.on('close', () => {
    isClosed = true
    for (const { reject } of pending.values()) reject(disconnected())
  })
  port.unref()

  const send = (request: CallRequest | AbortRequest) => {
    // oxlint-disable-next-line unicorn/require-post-message-target-origin -- a port is not a window
    port.postMessage(request)
  }

  let runningCount = 0
  const waiting: (() => void)[] = []
  const call = async (target: string, body: string, signal: AbortSignal | undefined): Promise<CallResponse> => {
    if (runningCount < maximumConcurrency) runningCount++
    else await new Promise<void>((resolve) => waiting.push(resolve))
    try {
      return await exchange(target, body, signal)
    } finally {
      const next = waiting.shift()
      if (next === undefined) runningCount--
      else next()
    }
  }

  const exchange = async (target: string, body: string, signal: AbortSignal | undefined): Promise<CallResponse> => {
    if (isClosed || signal?.aborted) throw disconnected()
    const id = ++lastId
    const response = Promise.withResolvers<CallResponse>()
    pending.set(id, response)
    const timer = timeoutMs === 'none' ? undefined : setTimeout(() => response.reject(timedOut()), timeoutMs)
    const abort = () => send({ abortId: id })
    signal?.addEventListener('abort', abort)
    send({ id, target, body, isAbortable: signal !== undefined })
    try {
      return await response.promise
    } finally {
      clearTimeout(timer)
      signal?.removeEventListener('abort', abort)
      pending.delete(id)
    }
  }
  return {
    requestHandler: {
      handle: async ({ headers, body }, { abortSignal } = {}) => {
        const { statusCode, body: text } = await call(headers['x-amz-target'] ?? '', utf8(body), abortSignal)
        return { response: { statusCode, headers: {}, body: Buffer.from(text) } }
      },
    },
    signer: { sign: async (request) => request },
  }
}

/** The SDK repeats a call after these errors, as it does for HTTP. */
const disconnected = () => Object.assign(new Error('The emulator closed the connection.'), { code: 'ECONNRESET' })
const timedOut = () => Object.assign(new Error('The emulator did not respond in time.'), { name: 'TimeoutError' })

const utf8 = ({ buffer, byteOffset, byteLength }: Uint8Array): string =>
  Buffer.from(buffer, byteOffset, byteLength).toString()
