import { once } from 'node:events'
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
 * Lets SDK clients call the emulators at the other end of the port. A call fails with `TimeoutError` after the time
 * limit, which includes the wait for other calls. Long polls need the time limit `none`.
 */
export function transportOver(
  port: MessagePort,
  timeoutMs: number | 'none' = awsTimeouts.requestTimeout,
): AwsTransport {
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
  return {
    requestHandler: {
      handle: async ({ headers, body }, { abortSignal } = {}) => {
        const { statusCode, body: text } = await call(headers['x-amz-target'] ?? '', textOf(body), abortSignal)
        return { response: { statusCode, headers: {}, body: Buffer.from(text) } }
      },
    },
    signer: { sign: async (request) => request },
  }
}

/** The SDK repeats a call after these errors, as it does for HTTP. */
const disconnectedError = () => Object.assign(new Error('The emulator closed the connection.'), { code: 'ECONNRESET' })
const timedOutError = () => Object.assign(new Error('The emulator did not respond in time.'), { name: 'TimeoutError' })

/** The body of the installed SDK is bytes; other versions, which a release may contain, send text. */
const textOf = (body: string | Uint8Array): string =>
  typeof body === 'string' ? body : Buffer.from(body.buffer, body.byteOffset, body.byteLength).toString()
