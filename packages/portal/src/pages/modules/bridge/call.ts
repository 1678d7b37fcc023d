import type { ResponseMessage, CallError, CallMessage } from './messages.ts'
import { isOwnPath } from './own-path.ts'

/** Allowed methods, headers and sizes of calls. */
const methods = new Set(['GET', 'HEAD', 'POST', 'PUT', 'PATCH', 'DELETE'])
const sent = new Set([
  'accept',
  'accept-language',
  'content-language',
  'content-type',
  'idempotency-key',
  'if-match',
  'if-modified-since',
  'if-none-match',
  'if-unmodified-since',
])
const requestBytes = 4 * 1024 * 1024
/** The limit after decompression: 4.5 MB on the wire may be a thousand times that. */
const answerBytes = 8 * 1024 * 1024

export interface CallOptions {
  origin: string
  /** Base paths of the module. */
  bases: readonly string[]
  fetch: (request: Request) => Promise<Response>
  signal: AbortSignal
}

/** Makes a call for a page. Returns a response for every outcome. */
export async function call(message: CallMessage, options: CallOptions): Promise<ResponseMessage> {
  const { id } = message
  const failed = (error: CallError) => ({ platform: 'response', id, status: 0, headers: {}, body: '', error }) as const
  const request = requestOf(message, options)
  if (typeof request === 'string') return failed(request)
  try {
    const response = await options.fetch(request)
    const body = await textOf(response)
    if (body === undefined) return failed('too_large')
    return { platform: 'response', id, status: response.status, headers: Object.fromEntries(response.headers), body }
  } catch {
    return failed('unreachable')
  }
}

function requestOf({ method, path, headers, body }: CallMessage, options: CallOptions): Request | CallError {
  const { origin, bases, signal } = options
  if (!methods.has(method) || !isOwnPath(path, bases)) return 'not_allowed'
  if (body !== undefined && new TextEncoder().encode(body).length > requestBytes) return 'too_large'
  try {
    return new Request(`${origin}${path}`, {
      method,
      headers: Object.entries(headers).filter(([name]) => sent.has(name.toLowerCase())),
      // A redirect may leave the module's paths.
      redirect: 'error',
      signal,
      ...(body !== undefined && { body }),
    })
  } catch {
    // A GET with a body, or an invalid header.
    return 'not_allowed'
  }
}

/** The text of a response; undefined if it exceeds the limit. */
async function textOf({ body }: Response): Promise<string | undefined> {
  if (body === null) return ''
  const decoder = new TextDecoder()
  let [text, bytes] = ['', 0]
  for (const reader = body.getReader(); ;) {
    const { done, value } = await reader.read()
    if (done) return text + decoder.decode()
    bytes += value.byteLength
    if (bytes > answerBytes) {
      await reader.cancel()
      return undefined
    }
    text += decoder.decode(value, { stream: true })
  }
}
