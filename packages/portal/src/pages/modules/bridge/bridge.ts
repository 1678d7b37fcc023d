import {
  type CallError,
  type CallMessage,
  type FrameContext,
  parseMessage,
  type PortalMessage,
  type ResponseMessage,
} from './messages.ts'
import { isModulePath } from './module-path.ts'

// A page that sends requests in a loop must not block the portal.
const maxConcurrentCalls = 10

interface BridgeOptions extends Omit<CallOptions, 'signal'> {
  moduleId: string
  context: () => FrameContext
  send: (message: PortalMessage) => void
  /** Opens another page of the module. The path is already validated. */
  open: (path: string) => void
}

/** The portal's side of the message channel to a module's page. */
export interface Bridge {
  /** Handles a message whose source is already verified. */
  receive: (data: unknown) => void
  /** Sends the context if the page has requested it before. */
  sendContext: () => void
  end: () => void
}

/** Connects a module's page to the portal. Invalid messages are ignored. */
export function openBridge({ moduleId, context, send, open, ...options }: BridgeOptions): Bridge {
  const controller = new AbortController()
  let activeCalls = 0
  let isContextRequested = false

  const sendContext = () => {
    if (isContextRequested) send({ platform: 'surroundings', ...context() })
  }
  const respond = async (message: Parameters<typeof call>[0]) => {
    if (activeCalls >= maxConcurrentCalls) {
      return send({ platform: 'response', id: message.id, status: 0, headers: {}, body: '', error: 'too_many' })
    }
    activeCalls += 1
    const response = await call(message, { ...options, signal: controller.signal })
    activeCalls -= 1
    if (!controller.signal.aborted) send(response)
  }
  const receive = (data: unknown) => {
    const message = parseMessage(data)
    if (message?.platform === 'request') void respond(message)
    if (message?.platform === 'open' && isModulePath(message.path, [`/modules/${moduleId}`])) open(message.path)
    if (message?.platform === 'hello') {
      isContextRequested = true
      sendContext()
    }
  }
  return { receive, sendContext, end: () => controller.abort() }
}

// Requests of a page are limited to these methods, headers and sizes.
const allowedMethods = new Set(['GET', 'HEAD', 'POST', 'PUT', 'PATCH', 'DELETE'])
const allowedHeaders = new Set([
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
const maxRequestBytes = 4 * 1024 * 1024
// This limit applies after decompression, because a small compressed response can be very large.
const maxResponseBytes = 8 * 1024 * 1024

export interface CallOptions {
  origin: string
  basePaths: readonly string[]
  fetch: (request: Request) => Promise<Response>
  signal: AbortSignal
}

// Never rejects: a failed request results in a response with `error`.
async function call(message: CallMessage, options: CallOptions): Promise<ResponseMessage> {
  const { id } = message
  const failure = (error: CallError) => ({ platform: 'response', id, status: 0, headers: {}, body: '', error }) as const
  const request = requestOf(message, options)
  if (typeof request === 'string') return failure(request)
  try {
    const response = await options.fetch(request)
    const body = await textOf(response)
    if (body === undefined) return failure('too_large')
    return { platform: 'response', id, status: response.status, headers: Object.fromEntries(response.headers), body }
  } catch {
    return failure('unreachable')
  }
}

function requestOf({ method, path, headers, body }: CallMessage, options: CallOptions): Request | CallError {
  const { origin, basePaths, signal } = options
  if (!allowedMethods.has(method) || !isModulePath(path, basePaths)) return 'not_allowed'
  if (body !== undefined && new TextEncoder().encode(body).length > maxRequestBytes) return 'too_large'
  try {
    return new Request(`${origin}${path}`, {
      method,
      headers: Object.entries(headers).filter(([name]) => allowedHeaders.has(name.toLowerCase())),
      // A redirect could lead outside of the module's paths.
      redirect: 'error',
      signal,
      ...(body !== undefined && { body }),
    })
  } catch {
    // `Request` rejects a GET with a body and invalid headers.
    return 'not_allowed'
  }
}

// Returns undefined if the body exceeds the limit.
async function textOf({ body }: Response): Promise<string | undefined> {
  if (body === null) return ''
  const decoder = new TextDecoder()
  let [text, bytes] = ['', 0]
  for (const reader = body.getReader(); ;) {
    const { done, value } = await reader.read()
    if (done) return text + decoder.decode()
    bytes += value.byteLength
    if (bytes > maxResponseBytes) {
      await reader.cancel()
      return undefined
    }
    text += decoder.decode(value, { stream: true })
  }
}
