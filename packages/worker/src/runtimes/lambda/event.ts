import { tokenHeader } from '@platform/modules/protocol'
import { type ModuleResponse, type ModuleRequest, RuntimeError } from '../port.ts'

/** Requests and responses in Lambda's format: that of API Gateway (HTTP API, payload format 2.0). */

/**
 * Creates the event of a request. API Gateway decodes paths; here the path stays as it was sent, so that the function
 * can restore the URL. The platform's token replaces any other token.
 */
export function eventOf({ method, path, headers = {}, body }: ModuleRequest, token: string) {
  const queryStart = path.indexOf('?')
  const rawPath = queryStart === -1 ? path : path.slice(0, queryStart)
  const lowerCaseHeaders = Object.entries(headers).map(([name, value]) => [name.toLowerCase(), value])
  const http = { method, path: rawPath, protocol: 'HTTP/1.1', sourceIp: '', userAgent: '' }
  return {
    version: '2.0',
    routeKey: '$default',
    rawPath,
    rawQueryString: queryStart === -1 ? '' : path.slice(queryStart + 1),
    headers: { host: 'module', ...Object.fromEntries(lowerCaseHeaders), [tokenHeader]: token },
    requestContext: { routeKey: '$default', stage: '$default', http },
    ...(body !== undefined && { body: Buffer.from(body).toString('base64') }),
    isBase64Encoded: body !== undefined,
  }
}

const isObject = (value: unknown): value is Record<string, unknown> => typeof value === 'object' && value !== null

/** Parses a response. Throws `RuntimeError`: `crashed` if it is invalid, `too_large` if the body exceeds `maxBytes`. */
export function responseIn(payload: Uint8Array, maxBytes: number): ModuleResponse {
  const result = parse(payload)
  if (!isObject(result)) throw invalidResponse('it is not an object')
  const { statusCode: status, headers, body = '', isBase64Encoded } = result
  if (typeof status !== 'number' || !Number.isInteger(status) || status < 200 || status > 599) {
    throw invalidResponse('it has no status')
  }
  if (typeof body !== 'string') throw invalidResponse('its body is not a string')
  const bytes = Buffer.from(body, isBase64Encoded === true ? 'base64' : 'utf8')
  if (bytes.length > maxBytes) throw new RuntimeError('too_large', `The response has more than ${maxBytes} bytes.`)
  return { status, headers: headersOf(headers), body: bytes }
}

function parse(payload: Uint8Array): unknown {
  try {
    return JSON.parse(Buffer.from(payload).toString())
  } catch {
    throw invalidResponse('it is not JSON')
  }
}

const invalidResponse = (reason: string): RuntimeError =>
  new RuntimeError('crashed', `The function returned no HTTP response: ${reason}.`)

/** Returns the headers that are valid in HTTP, except cookies, which would apply to the platform's domain. */
function headersOf(headers: unknown): Record<string, string> {
  if (!isObject(headers)) return {}
  const entries = Object.entries(headers).map(([name, value]) => [name.toLowerCase(), value] as const)
  return Object.fromEntries(entries.filter((header): header is [string, string] => isPassed(...header)))
}

const isPassed = (name: string, value: unknown): boolean =>
  name !== 'set-cookie' && namePattern.test(name) && typeof value === 'string' && valuePattern.test(value)

const namePattern = /^[\w!#$%&'*+.^`|~-]+$/
const valuePattern = /^[\t\u0020-\u007e\u0080-\u00ff]*$/
