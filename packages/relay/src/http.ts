import { messageOf } from './log.ts'
import { type JsonObject, parseJsonObject } from './json.ts'

const maxResponseBytes = 8 * 1024 * 1024

export type Post = {
  url: string
  headers: Record<string, string>
  body: string
  timeoutMs: number
  signal: AbortSignal
}

export type RelayResponse = { status: number; headers: Headers; body: JsonObject }

/** The error code of a response, or its status if it has none. */
export function codeOf({ status, body }: RelayResponse): string {
  return typeof body.error === 'string' ? body.error : `status ${status}`
}

/**
 * Thrown if the server did not decide: there is no response, an incomplete one, or one that asks for a retry. `afterMs`
 * is the time of its `Retry-After` header.
 */
export class RetryableError extends Error {
  readonly afterMs: number

  constructor(message: string, response?: Response) {
    super(message)
    this.afterMs = 1000 * (Number(response?.headers.get('retry-after')) || 0)
  }
}

/**
 * Sends a POST request once. Throws `RetryableError` if the server did not decide, and `AbortError` if the signal
 * aborts.
 */
export async function post({ url, headers, body, timeoutMs, signal }: Post): Promise<RelayResponse> {
  signal.throwIfAborted()
  const limit = new AbortController()
  const timer = setTimeout(() => limit.abort(new Error(`no response within ${timeoutMs / 1000} seconds`)), timeoutMs)
  const abort = () => limit.abort(signal.reason)
  signal.addEventListener('abort', abort)
  try {
    const response = await fetch(url, { method: 'POST', headers, body, redirect: 'manual', signal: limit.signal })
    return await parseResponse(response)
  } catch (error) {
    signal.throwIfAborted()
    throw error instanceof RetryableError ? error : new RetryableError(networkErrorMessage(error))
  } finally {
    clearTimeout(timer)
    signal.removeEventListener('abort', abort)
  }
}

async function parseResponse(response: Response): Promise<RelayResponse> {
  const text = await readText(response)
  const body = parseJsonObject(text)
  const { status, headers } = response
  const isRetryable = status === 408 || status === 429 || status >= 500 || body?.error === 'conflict'
  if (isRetryable) throw new RetryableError(`status ${status}`, response)
  const location = headers.get('location')
  if (location !== null) throw new RetryableError(`it redirects to ${location}; use that address as --server`, response)
  // A response without JSON comes from a proxy, not from the platform.
  if (body === undefined && status !== 204) throw new RetryableError(`status ${status} without JSON`, response)
  return { status, headers, body: body ?? {} }
}

async function readText(response: Response): Promise<string> {
  const chunks: Uint8Array[] = []
  let sizeBytes = 0
  for await (const chunk of response.body ?? []) {
    sizeBytes += chunk.length
    if (sizeBytes > maxResponseBytes) throw new RetryableError('its response is too long', response)
    chunks.push(chunk)
  }
  return Buffer.concat(chunks).toString('utf8')
}

function networkErrorMessage(error: unknown): string {
  const cause = error instanceof Error ? error.cause : undefined
  if (cause instanceof Error) return 'code' in cause ? String(cause.code) : cause.message
  return messageOf(error)
}
