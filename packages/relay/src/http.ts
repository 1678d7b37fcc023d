import { type IncomingHttpHeaders, type IncomingMessage, get as httpGet, request as httpRequest } from 'node:http'
import { get as httpsGet, request as httpsRequest } from 'node:https'
import { messageOf } from './log.ts'
import { type JsonObject, parseJsonObject } from './json.ts'
import { agentFor } from './proxy.ts'

const downloadLimitMs = 120_000
const maxResponseBytes = 8 * 1024 * 1024

export type Post = {
  url: string
  headers: Record<string, string>
  body: string
  timeoutMs: number
  signal: AbortSignal
}

export type RelayResponse = { status: number; headers: IncomingHttpHeaders; body: JsonObject }

/** The problem with a response that has another form than those of the platform. */
export const foreignResponse =
  'the response is not from the platform; check --server, proxies, and whether this network requires a sign-in'

/** Returns the error code of a response, or its status if it has no code. */
export function codeOf({ status, body }: Pick<RelayResponse, 'status' | 'body'>): string {
  return typeof body.error === 'string' ? body.error : `status ${status}`
}

/**
 * Thrown if the server did not decide: there is no usable response from the platform, or the response asks for a retry.
 * `afterMs` is the time in the `Retry-After` header in milliseconds, or 0.
 */
export class RetryableError extends Error {
  readonly afterMs: number

  constructor(message: string, headers: IncomingHttpHeaders = {}) {
    super(message)
    this.afterMs = 1000 * (Number(headers['retry-after']) || 0)
  }
}

/**
 * Sends a POST request once. Throws `RetryableError` if the server did not decide, and the reason of the signal if it
 * aborts.
 */
export async function post({ signal, timeoutMs, ...request }: Post): Promise<RelayResponse> {
  signal.throwIfAborted()
  const timeout = new AbortController()
  const timer = setTimeout(() => timeout.abort(new Error(`no response within ${timeoutMs / 1000} seconds`)), timeoutMs)
  const abort = () => timeout.abort(signal.reason)
  signal.addEventListener('abort', abort)
  try {
    return await parseResponse(await send(request, timeout.signal))
  } catch (error) {
    signal.throwIfAborted()
    if (error instanceof RetryableError) throw error
    throw new RetryableError(networkErrorMessage(timeout.signal.aborted ? timeout.signal.reason : error))
  } finally {
    clearTimeout(timer)
    signal.removeEventListener('abort', abort)
  }
}

/** Downloads a text. Throws `RetryableError` if the download fails. */
export async function getText(url: string): Promise<string> {
  const address = new URL(url)
  const get = address.protocol === 'https:' ? httpsGet : httpGet
  const options = { agent: agentFor(address), signal: AbortSignal.timeout(downloadLimitMs) }
  try {
    const response = await new Promise<IncomingMessage>((resolve, reject) => {
      get(address, options, resolve).once('error', reject)
    })
    if (response.statusCode !== 200) throw new RetryableError(`status ${response.statusCode}`)
    return await readText(response)
  } catch (error) {
    if (error instanceof RetryableError) throw error
    throw new RetryableError(networkErrorMessage(error))
  }
}

function send({ url, headers, body }: Pick<Post, 'url' | 'headers' | 'body'>, signal: AbortSignal) {
  return new Promise<IncomingMessage>((resolve, reject) => {
    const address = new URL(url)
    const request = address.protocol === 'https:' ? httpsRequest : httpRequest
    const options = { method: 'POST', agent: agentFor(address), signal }
    const lengthHeader = { 'content-length': Buffer.byteLength(body) }
    request(address, { ...options, headers: { ...headers, ...lengthHeader } }, resolve)
      .once('error', reject)
      .end(body)
  })
}

async function parseResponse(response: IncomingMessage): Promise<RelayResponse> {
  const { statusCode: status = 0, headers } = response
  const text = await readText(response)
  const body = parseJsonObject(text)
  const isRetryable = status === 408 || status === 429 || status >= 500 || body?.error === 'conflict'
  if (isRetryable) throw new RetryableError(`status ${status}`, headers)
  const { location } = headers
  if (location !== undefined && status >= 300)
    throw new RetryableError(`it redirects to ${location}; use that address as --server`, headers)
  // A response without JSON comes from a proxy, not from the platform.
  if (body === undefined && status !== 204) throw new RetryableError(`status ${status} without JSON`, headers)
  if (status >= 400 && (typeof body?.error !== 'string' || typeof body.traceId !== 'string'))
    throw new RetryableError(`status ${status}, and ${foreignResponse}`, headers)
  return { status, headers, body: body ?? {} }
}

async function readText(response: IncomingMessage): Promise<string> {
  const chunks: Buffer[] = []
  let sizeBytes = 0
  for await (const chunk of response as AsyncIterable<Buffer>) {
    sizeBytes += chunk.length
    if (sizeBytes > maxResponseBytes) throw new RetryableError('its response is too long', response.headers)
    chunks.push(chunk)
  }
  return Buffer.concat(chunks).toString('utf8')
}

function networkErrorMessage(error: unknown): string {
  return error instanceof Error && 'code' in error ? String(error.code) : messageOf(error)
}
