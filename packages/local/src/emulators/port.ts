import type { MessagePort } from 'node:worker_threads'
import { type AwsTransport, awsTimeouts } from '@platform/core/aws/sdk'
import { NoResponse } from './http/error.ts'

/** The protocol of AWS over a message port, which takes less than half of the CPU time of HTTP with signatures. */
interface CallRequest {
  id: number
  /** The header `X-Amz-Target`. */
  target: string
  body: string
}

export interface CallResponse {
  statusCode: number
  body: string
}

/** Throws `NoResponse` if the caller gets no response. */
export type Call = (target: string, body: string) => Promise<CallResponse>

type PortResponse = { id: number; response: CallResponse | 'disconnected' }

/** Performs the calls that arrive at the port. */
export function serveCalls(port: MessagePort, call: Call): void {
  const respond = async ({ id, target, body }: CallRequest) => {
    const response = await call(target, body).catch(unanswered)
    if (response !== undefined) port.postMessage({ id, response } satisfies PortResponse)
  }
  port.on('message', (request: CallRequest) => void respond(request))
  port.unref()
}

function unanswered(error: unknown): 'disconnected' | undefined {
  if (error instanceof NoResponse && error.hangs) return undefined
  return 'disconnected'
}

/** Lets SDK clients call the emulators at the other end of the port, with the errors and time limits of HTTP. */
export function transportOver(port: MessagePort): AwsTransport {
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

  const call = async (target: string, body: string): Promise<CallResponse> => {
    if (isClosed) throw disconnected()
    const id = ++lastId
    const response = Promise.withResolvers<CallResponse>()
    pending.set(id, response)
    const timer = setTimeout(() => response.reject(timedOut()), awsTimeouts.requestTimeout)
    // oxlint-disable-next-line unicorn/require-post-message-target-origin -- a port is not a window
    port.postMessage({ id, target, body } satisfies CallRequest)
    try {
      return await response.promise
    } finally {
      clearTimeout(timer)
      pending.delete(id)
    }
  }
  return {
    requestHandler: {
      handle: async ({ headers, body }) => {
        const { statusCode, body: text } = await call(headers['x-amz-target'] ?? '', utf8(body))
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
