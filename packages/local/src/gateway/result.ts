import { validateHeaderName, validateHeaderValue } from 'node:http'
import { maxPayloadBytes, payloadBytes } from './event.ts'
import { connectionHeaders } from './fields.ts'

export interface HttpResponse {
  status: number
  /** Names in lower case. */
  headers: Map<string, string | string[]>
  body: Buffer
}

/** Thrown for a response that API Gateway would reject. */
class InvalidResult extends Error {
  override readonly name = 'InvalidResult'
}

interface ProxyResult {
  statusCode: number
  headers?: Record<string, unknown>
  cookies?: string[]
  body?: string
  isBase64Encoded?: boolean
}

const isObject = (value: unknown): value is Record<string, unknown> => typeof value === 'object' && value !== null

/**
 * Interprets the result of a function for a request whose body is pending. Status 100 admits the request, with the
 * number of bytes to read; any other result rejects it.
 */
export const admissionOf = (result: unknown): { limitBytes: number } | { rejection: unknown } =>
  isObject(result) && result['statusCode'] === 100
    ? { limitBytes: Number(isObject(result['headers']) ? result['headers']['x-body-limit'] : 0) }
    : { rejection: result }

/** Applies the rules of payload format 2.0. Throws `InvalidResult`. */
export function toHttpResponse(result: unknown): HttpResponse {
  const parsed = isObject(result) && 'statusCode' in result ? validateResult(result) : asJsonBody(result)
  const { statusCode, cookies = [], body = '', isBase64Encoded } = parsed
  if (payloadBytes(parsed, body) > maxPayloadBytes) throw new InvalidResult('The response is larger than 6 MB.')
  const headers = headersOf(parsed.headers ?? {})
  if (cookies.length > 0) headers.set('set-cookie', cookies)
  if (body !== '' && !headers.has('content-type')) headers.set('content-type', 'text/plain; charset=utf-8')
  return { status: statusCode, headers, body: Buffer.from(body, isBase64Encoded === true ? 'base64' : 'utf8') }
}

/** A result without a status code becomes the body of a response with status 200. */
const asJsonBody = (result: unknown): ProxyResult => ({
  statusCode: 200,
  headers: { 'content-type': 'application/json' },
  body: typeof result === 'string' ? result : (JSON.stringify(result) ?? ''),
})

function validateResult(result: Record<string, unknown>): ProxyResult {
  const { statusCode, headers, cookies, body } = result
  const status = Number(statusCode)
  if (!Number.isInteger(status) || status < 200 || status > 599)
    throw new InvalidResult('The status code is not valid.')
  if (!isAbsent(headers) && !isObject(headers)) throw new InvalidResult('The headers are not an object.')
  if (!isAbsent(cookies) && !isTextList(cookies)) throw new InvalidResult('The cookies are not a list of strings.')
  if (!isAbsent(body) && typeof body !== 'string') throw new InvalidResult('The body is not a string.')
  return {
    statusCode: status,
    headers: headers ?? {},
    cookies: cookies ?? [],
    body: body ?? '',
    isBase64Encoded: result['isBase64Encoded'] === true,
  }
}

const isAbsent = (value: unknown): value is undefined | null => value === undefined || value === null
const isTextList = (value: unknown): value is string[] =>
  Array.isArray(value) && value.every((item) => typeof item === 'string')

function headersOf(source: Record<string, unknown>): HttpResponse['headers'] {
  const headers: HttpResponse['headers'] = new Map()
  for (const [name, value] of Object.entries(source)) {
    const lowerCase = name.toLowerCase()
    if (isAbsent(value) || lowerCase === 'content-length' || connectionHeaders.has(lowerCase)) continue
    headers.set(lowerCase, headerValue(name, value))
  }
  return headers
}

function headerValue(name: string, value: unknown): string {
  const text = typeof value === 'number' || typeof value === 'boolean' ? String(value) : value
  try {
    if (typeof text !== 'string') throw new TypeError('The value is not a string.')
    validateHeaderName(name)
    validateHeaderValue(name, text)
    return text
  } catch (error) {
    throw new InvalidResult(`The header ${JSON.stringify(name)} is not valid.`, { cause: error })
  }
}
