import type { IncomingMessage } from 'node:http'
import { hopByHopHeaders } from '@platform/worker/runtimes/instance-request'
import type { Sender } from './sender.ts'
import { amazonTrace } from './trace.ts'

/** API Gateway does not forward these headers. */
export const connectionHeaders: ReadonlySet<string> = new Set([...hopByHopHeaders, 'expect'])

/** Returns cookies separately, as in payload format 2.0. */
export function eventHeaders(
  request: IncomingMessage,
  sender: Sender,
  traceId: string,
): { headers: Record<string, string>; cookies?: string[] } {
  const headers = new Map<string, string>()
  const cookies: string[] = []
  for (const [name, value] of pairs(request.rawHeaders)) {
    if (name === 'cookie') cookies.push(...value.split(/; */))
    else if (!connectionHeaders.has(name)) append(headers, name, value)
  }
  if (sender.host !== undefined) headers.set('host', sender.host)
  append(headers, 'x-forwarded-for', sender.address)
  headers.set('x-forwarded-port', String(request.socket.localPort ?? ''))
  headers.set('x-forwarded-proto', sender.protocol)
  if (!headers.has('x-amzn-trace-id')) headers.set('x-amzn-trace-id', amazonTrace(traceId))
  return { headers: Object.fromEntries(headers), ...(cookies.length > 0 && { cookies }) }
}

export function eventQuery(query: string): { queryStringParameters?: Record<string, string> } {
  if (query === '') return {}
  const parameters = new Map<string, string>()
  for (const [name, value] of new URLSearchParams(query)) append(parameters, name, value)
  return { queryStringParameters: Object.fromEntries(parameters) }
}

function append(fields: Map<string, string>, name: string, value: string): void {
  const earlierValue = fields.get(name)
  fields.set(name, earlierValue === undefined ? value : `${earlierValue},${value}`)
}

function* pairs(rawHeaders: readonly string[]): Generator<[name: string, value: string]> {
  for (let index = 0; index < rawHeaders.length; index += 2) {
    yield [(rawHeaders[index] ?? '').toLowerCase(), rawHeaders[index + 1] ?? '']
  }
}
