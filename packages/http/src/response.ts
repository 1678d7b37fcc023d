import { isUtf8 } from 'node:buffer'
import type { EndpointDefinition } from '@platform/contract/endpoint'
import { config } from '@platform/core/config'
import { platformError } from '@platform/core/error'
import type * as z from 'zod'
import type { HttpContext } from './context.ts'
import type { GatewayEvent } from './request.ts'
import type { Result } from './result.ts'

/** A response before it is converted to the format of the gateway. Header names are lower-case. */
export interface HttpResponse {
  status: number
  headers: Readonly<Record<string, string>>
  /** Values of the `Set-Cookie` headers. */
  cookies?: readonly string[]
  body: string | Uint8Array | null
}

// oxlint-disable-next-line no-control-regex
const invalidHeaderCharacter = /[^\t\u0020-\u007e\u0080-\u00ff]/

const statusesWithoutBody = new Set([204, 205, 304])

/** Creates a response. Throws if a header value has invalid characters, or the status does not allow the body. */
export function httpResponse(
  status: number,
  body: HttpResponse['body'],
  headers: Readonly<Record<string, string>>,
  cookies: readonly string[] = [],
): HttpResponse {
  const fields = [...Object.entries(headers), ...cookies.map((cookie) => ['set-cookie', cookie] as const)]
  const invalidField = fields.find(([, value]) => invalidHeaderCharacter.test(value))
  if (invalidField !== undefined) throw new Error(`The header ${invalidField[0]} cannot be sent.`)
  if (body !== null && statusesWithoutBody.has(status)) throw new Error(`A response with ${status} cannot have a body.`)
  return { status, headers, cookies, body }
}

/** Responds to OPTIONS, and throws `method_not_allowed` for other methods that a path does not serve. */
export function respondToOtherMethod(method: string, servedMethods: readonly string[]): HttpResponse {
  const allow = [...new Set([...servedMethods, ...(servedMethods.includes('GET') ? ['HEAD'] : []), 'OPTIONS'])].join(
    ', ',
  )
  if (method === 'OPTIONS') return httpResponse(204, null, { allow })
  throw platformError('method_not_allowed', { headers: { allow } })
}

/** The response format of API Gateway. */
export interface GatewayResult {
  statusCode: number
  headers: Record<string, string>
  /** Values of the `Set-Cookie` headers; absent if there are none. */
  cookies?: string[]
  body: string
  isBase64Encoded: boolean
}

export type GatewayHandler = (event: GatewayEvent) => Promise<GatewayResult>

/**
 * Converts a response to the format of API Gateway. Bytes are encoded as Base64 if they are long or not valid UTF-8.
 */
export function toResult({ status, headers, cookies = [], body }: HttpResponse): GatewayResult {
  const isBase64Encoded = body !== null && typeof body !== 'string' && !isText(body)
  return {
    statusCode: status,
    headers: { ...headers },
    ...(cookies.length > 0 && { cookies: [...cookies] }),
    // Some gateways do not accept lone surrogates in JSON.
    body:
      typeof body === 'string'
        ? body.toWellFormed()
        : Buffer.from(body ?? '').toString(isBase64Encoded ? 'base64' : 'utf8'),
    isBase64Encoded,
  }
}

// On Lambda, JSON escapes could make a long text six times as large; Base64 adds only a third.
const maxTextBytes = 64 * 1024

const isText = (body: Uint8Array): boolean => body.length <= maxTextBytes && isUtf8(body)

/** Converts the result of a handler to a response, which is a 304 response if the caller's copy is current. */
export function toHttpResponse(context: HttpContext, { responses }: EndpointDefinition, result: Result): HttpResponse {
  const { status, headers, cookies } = result
  const definition = responses[status]
  if (definition === undefined) throw new Error(`The endpoint does not define the status ${status}.`)
  if (matchesEtag(headers['etag'], context)) return httpResponse(304, null, headers)
  if (result.body instanceof Uint8Array) {
    return httpResponse(status, result.body, { 'content-type': 'application/octet-stream', ...headers }, cookies)
  }
  const [[type, media] = []] = Object.entries(definition.content ?? {})
  if (type === undefined) return httpResponse(status, null, headers, cookies)
  const text = textOf(media?.schema, result.body)
  return httpResponse(status, text, { 'content-type': type, ...headers }, cookies)
}

function textOf(schema: z.ZodType | undefined, body: unknown): string {
  if (schema === undefined) return String(body)
  if (body === undefined) throw new Error('The endpoint requires a body.')
  const text = JSON.stringify(body)
  if (config.PLAT_VALIDATE_RESPONSES === '1') validateResponse(schema, text)
  return text
}

/** Whether the caller's copy has this ETag. Gateways may have made the ETag weak. */
export function matchesEtag(etag: string | undefined, { env }: HttpContext): boolean {
  const etags = (env.event.headers['if-none-match'] ?? '').split(',')
  return etag !== undefined && etags.some((tag) => tag.trim().replace(/^W\//, '') === etag)
}

// Error messages contain no values, because values can be secret.
function validateResponse(schema: z.ZodType, text: string): void {
  const body: unknown = JSON.parse(text)
  const extraPaths = extraFieldPaths(body, schema.parse(body), '')
  if (extraPaths.length > 0)
    throw new Error(`The response has fields that the contract does not define: ${extraPaths.join(', ')}`)
}

// Returns the paths of members that the contract does not define.
function extraFieldPaths(received: unknown, parsed: unknown, path: string): string[] {
  if (typeof received !== 'object' || received === null) return []
  if (typeof parsed !== 'object' || parsed === null) return [path]
  const knownMembers = new Map(Object.entries(parsed))
  return Object.entries(received).flatMap(([name, value]) =>
    knownMembers.has(name) ? extraFieldPaths(value, knownMembers.get(name), `${path}/${name}`) : [`${path}/${name}`],
  )
}
