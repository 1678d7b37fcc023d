import * as http from 'node:http'
import { tokenHeader } from '@platform/modules/protocol'
import { hopByHop } from './hop-by-hop.ts'
import { type ModuleResponse, type ModuleRequest, type RequestLimits, RuntimeError } from './port.ts'

/** HTTP to what runs on this machine: an instance on its Unix socket, or the module host on loopback. */

/** Where somebody listens. */
export type InstanceAddress = { socketPath: string } | { host: string; port: number }

/**
 * Sends one request on a connection of its own and reads the whole answer. Throws `RuntimeFailure`: `unavailable` where
 * nobody listens, `timeout`, `too_large`, `crashed` where there is no whole answer, `refused` for what is no request.
 */
export function sendRequest(
  address: InstanceAddress,
  request: ModuleRequest,
  limits: RequestLimits,
): Promise<ModuleResponse> {
  const { timeoutMs, maxBytes } = limits
  return new Promise((resolve, reject) => {
    const outgoing = open(address, request)
    const settle = (settled: () => void) => {
      clearTimeout(timer)
      settled()
      outgoing.destroy()
    }
    const fail = (failure: RuntimeError) => settle(() => reject(failure))
    const timer = setTimeout(() => fail(failureOf('timeout', `No whole answer within ${timeoutMs} ms.`)), timeoutMs)
    let isAnswered = false
    outgoing.on('response', (incoming) => {
      isAnswered = true
      read(incoming, maxBytes).then((answer) => settle(() => resolve(answer)), fail)
    })
    outgoing.on('error', (error) => {
      if (!isAnswered) fail(connectionFailure(error))
    })
    // An answer that is none, such as a change of protocol, ends without an error.
    outgoing.on('close', () => {
      if (!isAnswered) fail(failureOf('crashed', 'The connection ended without an answer.'))
    })
    outgoing.end(request.body)
  })
}

/** Asks an instance on its socket, as the platform: its token goes with the request, in place of any other. */
export const callInstance = (
  socketPath: string,
  token: string,
  request: ModuleRequest,
  limits: RequestLimits,
): Promise<ModuleResponse> =>
  // Of one header spelled in two ways the last counts.
  sendRequest({ socketPath }, { ...request, headers: { ...request.headers, [tokenHeader]: token } }, limits)

/** Published events take up to 13 KiB of a head, and a module may have headers of its own. */
const maxHeaderSize = 65_536

function open(address: InstanceAddress, { method, path, headers = {}, body }: ModuleRequest): http.ClientRequest {
  const own = { connection: 'close', 'content-length': String(body?.length ?? 0) }
  const passed = Object.entries(headers).filter(([name]) => !hopByHop.has(name.toLowerCase()))
  const sent = { host: 'module', ...Object.fromEntries(passed), ...own }
  try {
    return http.request({ ...address, method, path, headers: sent, agent: false, maxHeaderSize })
  } catch (cause) {
    // A method, a path or a header that HTTP cannot carry.
    throw failureOf('refused', 'That is no request that HTTP can carry.', cause)
  }
}

async function read(incoming: http.IncomingMessage, maxBytes: number): Promise<ModuleResponse> {
  const parts: Buffer[] = []
  let bytes = 0
  try {
    for await (const part of incoming as AsyncIterable<Buffer>) {
      bytes += part.length
      if (bytes > maxBytes) throw failureOf('too_large', `Its answer has more than ${maxBytes} bytes.`)
      parts.push(part)
    }
  } catch (cause) {
    throw cause instanceof RuntimeError ? cause : failureOf('crashed', 'Its answer broke off.', cause)
  }
  return { status: incoming.statusCode ?? 0, headers: headersOf(incoming), body: Buffer.concat(parts) }
}

/** What a module says of the connection ends here; a cookie of its own would be one of the platform's address. */
function headersOf({ headersDistinct }: http.IncomingMessage): Record<string, string> {
  const named = new Set(headersDistinct['connection']?.flatMap((value) => value.toLowerCase().split(/\s*,\s*/)))
  const kept = Object.entries(headersDistinct).filter(
    ([name]) => !hopByHop.has(name) && !named.has(name) && name !== 'set-cookie',
  )
  return Object.fromEntries(kept.map(([name, values = []]) => [name, values.join(', ')]))
}

/** Where there is no connection, nobody listens, or too many wait already: nothing was sent. */
function connectionFailure(cause: NodeJS.ErrnoException): RuntimeError {
  return cause.syscall === 'connect'
    ? failureOf('unavailable', `Nobody takes connections there: ${cause.message}.`, cause)
    : failureOf('crashed', `There is no answer: ${cause.message}.`, cause)
}

const failureOf = (problem: RuntimeError['problem'], message: string, cause?: unknown): RuntimeError =>
  new RuntimeError(problem, message, { cause })
