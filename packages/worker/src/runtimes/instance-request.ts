import * as http from 'node:http'
import { tokenHeader } from '@platform/modules/protocol'
import { type ModuleResponse, type ModuleRequest, type RequestLimits, RuntimeError } from './port.ts'

/** Hop-by-hop headers, which are not forwarded (RFC 9110, section 7.6.1). */
export const hopByHopHeaders: ReadonlySet<string> = new Set([
  'connection',
  'keep-alive',
  'proxy-authenticate',
  'proxy-authorization',
  'proxy-connection',
  'te',
  'trailer',
  'transfer-encoding',
  'upgrade',
])

/** Address of a server on this machine: an instance on its Unix socket, or the module host on loopback. */

export type InstanceAddress = { socketPath: string } | { host: string; port: number }

/**
 * Sends one request on its own connection and reads the whole response. Throws `RuntimeError`: `unavailable` if the
 * connection fails, `timeout`, `too_large`, `crashed` if the response is incomplete, `refused` if the request is
 * invalid.
 */
export function sendRequest(
  address: InstanceAddress,
  request: ModuleRequest,
  limits: RequestLimits,
): Promise<ModuleResponse> {
  const { timeoutMs, maxBytes } = limits
  return new Promise((resolve, reject) => {
    const outgoing = openRequest(address, request)
    const settle = (settled: () => void) => {
      clearTimeout(timer)
      settled()
      outgoing.destroy()
    }
    const fail = (failure: RuntimeError) => settle(() => reject(failure))
    const timer = setTimeout(
      () => fail(failureOf('timeout', `No complete response within ${timeoutMs} ms.`)),
      timeoutMs,
    )
    let hasResponse = false
    outgoing.on('response', (incoming) => {
      hasResponse = true
      const isStream = /^text\/event-stream\b/i.test(incoming.headers['content-type'] ?? '')
      readResponse(incoming, isStream ? undefined : maxBytes).then((response) => settle(() => resolve(response)), fail)
    })
    outgoing.on('error', (error) => {
      if (!hasResponse) fail(connectionFailure(error))
    })
    // An invalid response, such as a protocol upgrade, ends the connection without an error.
    outgoing.on('close', () => {
      if (!hasResponse) fail(failureOf('crashed', 'The connection ended without a response.'))
    })
    outgoing.end(request.body)
  })
}

/** Calls an instance on its socket with the platform's token, which replaces any other token. */
export const callInstance = (
  socketPath: string,
  token: string,
  request: ModuleRequest,
  limits: RequestLimits,
): Promise<ModuleResponse> =>
  // If a header has two spellings, the last one is used.
  sendRequest({ socketPath }, { ...request, headers: { ...request.headers, [tokenHeader]: token } }, limits)

/** Published events take up to 13 KiB of the headers, and a module may add headers of its own. */
const maxHeaderSize = 65_536

function openRequest(
  address: InstanceAddress,
  { method, path, headers = {}, body }: ModuleRequest,
): http.ClientRequest {
  const connectionHeaders = { connection: 'close', 'content-length': String(body?.length ?? 0) }
  const forwardedHeaders = Object.entries(headers).filter(([name]) => !hopByHopHeaders.has(name.toLowerCase()))
  const sentHeaders = { host: 'module', ...Object.fromEntries(forwardedHeaders), ...connectionHeaders }
  try {
    return http.request({ ...address, method, path, headers: sentHeaders, agent: false, maxHeaderSize })
  } catch (cause) {
    throw failureOf('refused', 'The request is invalid in HTTP.', cause)
  }
}

/** Reads a response. Without a limit, the body is not read, because a stream of events may never end. */
async function readResponse(incoming: http.IncomingMessage, maxBytes: number | undefined): Promise<ModuleResponse> {
  const head = { status: incoming.statusCode ?? 0, headers: headersOf(incoming) }
  if (maxBytes === undefined) {
    incoming.on('error', () => undefined)
    return { ...head, body: Buffer.alloc(0) }
  }
  const parts: Buffer[] = []
  let bytes = 0
  try {
    for await (const part of incoming as AsyncIterable<Buffer>) {
      bytes += part.length
      if (bytes > maxBytes) throw failureOf('too_large', `The response has more than ${maxBytes} bytes.`)
      parts.push(part)
    }
  } catch (cause) {
    throw cause instanceof RuntimeError ? cause : failureOf('crashed', 'The response is incomplete.', cause)
  }
  return { ...head, body: Buffer.concat(parts) }
}

/** Returns the headers without hop-by-hop headers and cookies, which would apply to the platform's domain. */
function headersOf({ headersDistinct }: http.IncomingMessage): Record<string, string> {
  const hopByHopNames = new Set(headersDistinct['connection']?.flatMap((value) => value.toLowerCase().split(/\s*,\s*/)))
  const endToEnd = Object.entries(headersDistinct).filter(
    ([name]) => !hopByHopHeaders.has(name) && !hopByHopNames.has(name) && name !== 'set-cookie',
  )
  return Object.fromEntries(endToEnd.map(([name, values = []]) => [name, values.join(', ')]))
}

/** If the connection fails because no server listens or its queue is full, nothing was sent. */
function connectionFailure(cause: NodeJS.ErrnoException): RuntimeError {
  return cause.syscall === 'connect'
    ? failureOf('unavailable', `The module accepts no connections: ${cause.message}.`, cause)
    : failureOf('crashed', `No response: ${cause.message}.`, cause)
}

const failureOf = (problem: RuntimeError['problem'], message: string, cause?: unknown): RuntimeError =>
  new RuntimeError(problem, message, { cause })
