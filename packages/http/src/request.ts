import { isUtf8 } from 'node:buffer'
import type { ErrorDetail } from '@platform/contract/common'
import { type EndpointDefinition, mayOmitBody, takesForm } from '@platform/contract/endpoint'
import { platformError, PlatformError, validationFailedError } from '@platform/core/error'
import { jsonPointer } from '@platform/core/lib/validate'
import { type HttpResponse, httpResponse } from './response.ts'

/** The fields of an API Gateway event (HTTP API, payload 2.0) that are read. Header names are lower-case. */
export interface GatewayEvent {
  /** The decoded path: `%2F` arrives as `/`. */
  rawPath: string
  /** The path as the client sent it. Only the one-machine gateway sets it. */
  sentPath?: string
  rawQueryString: string
  headers: Readonly<Record<string, string | undefined>>
  /** Cookies as `name=value`. The headers do not contain them. */
  cookies?: readonly string[]
  body?: string
  isBase64Encoded: boolean
  /**
   * Whether the one-machine gateway has not read the body yet. If the caller may call the endpoint, the response is
   * `continueResponse`; the gateway then reads the body and sends the whole request.
   */
  isBodyPending?: true
  requestContext: { http: { method: string; sourceIp: string } }
}

const maxRequestBodyBytes = 4 * 1024 * 1024
const maxPublicBodyBytes = 64 * 1024

/** Header of `continueResponse`: the maximum size of the body in bytes. */
const bodyLimitHeader = 'x-body-limit'

/** Returns the headers of a request including its cookies. */
export const headersOf = ({ headers, cookies }: GatewayEvent): GatewayEvent['headers'] =>
  cookies === undefined ? headers : { ...headers, cookie: cookies.join('; ') }

const encodingOf = ({ isBase64Encoded }: GatewayEvent) => (isBase64Encoded ? 'base64' : 'utf8')

type BodyLimits = Pick<EndpointDefinition, 'access' | 'maxBodyBytes'>

const bodyLimitOf = ({ access, maxBodyBytes }: BodyLimits): number =>
  maxBodyBytes ?? (access === 'public' ? maxPublicBodyBytes : maxRequestBodyBytes)

/**
 * Throws `payload_too_large` for bodies above the limit of the endpoint, before they are parsed. A pending body counts
 * as one byte above the default limit of public endpoints: the gateway reads bodies up to that limit itself.
 */
export function rejectLargeBody(event: GatewayEvent, endpoint: BodyLimits): void {
  const sizeBytes = event.isBodyPending
    ? maxPublicBodyBytes + 1
    : Buffer.byteLength(event.body ?? '', encodingOf(event))
  if (sizeBytes > bodyLimitOf(endpoint)) throw platformError('payload_too_large')
}

/** Creates the response that lets the gateway read the body of an authenticated caller. */
export const continueResponse = (endpoint: BodyLimits): HttpResponse =>
  httpResponse(100, null, { [bodyLimitHeader]: String(bodyLimitOf(endpoint)) })

export const bytesOf = (event: GatewayEvent): Uint8Array => Buffer.from(event.body ?? '', encodingOf(event))

// oxlint-disable-next-line no-control-regex
const invalidPathPattern = /[%\\?#\u0000-\u001f\u007f-\u009f]|\/\/|\/\.{1,2}(?:\/|$)/

/**
 * Throws `invalid_path` for decoded paths that another program could decode or resolve differently, such as path
 * traversal.
 */
export function rejectInvalidPath({ rawPath }: GatewayEvent): void {
  if (invalidPathPattern.test(rawPath)) throw platformError('invalid_path')
}

// No valid callback of an identity provider is larger.
const maxFormBytes = 32 * 1024
const formType = /^application\/x-www-form-urlencoded *(?:; *charset="?utf-8"? *)?$/i
const jsonType = /^application\/json *(?:; *charset="?utf-8"? *)?$/i

export type LazyJson = () => object

/**
 * Returns a function that parses the body at its first call. The function throws if the body is not a JSON object,
 * exceeds the JSON limits or has another content type.
 */
export function lazyJson(endpoint: EndpointDefinition, event: GatewayEvent): LazyJson {
  let body: object | undefined
  return () => (body ??= !event.body && mayOmitBody(endpoint) ? {} : readJson(event))
}

function readJson(event: GatewayEvent): object {
  if (!event.body) throw platformError('invalid_json')
  if (!jsonType.test(event.headers['content-type'] ?? '')) throw platformError('unsupported_media_type')
  const body = parseJson(event)
  if (typeof body !== 'object' || body === null || Array.isArray(body)) throw platformError('invalid_json')
  const details = jsonLimitErrors(body)
  if (details.length > 0) throw validationFailedError(details)
  return body
}

function parseJson(event: GatewayEvent): unknown {
  try {
    return JSON.parse(event.isBase64Encoded ? decodeUtf8(bytesOf(event)) : (event.body ?? ''))
  } catch {
    throw platformError('invalid_json')
  }
}

const decodeUtf8 = (bytes: Uint8Array): string =>
  new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(bytes)

/** Reads the parameters in the body of a callback, which identity providers send as a form or as JSON. */
function readBodyParameters(event: GatewayEvent, json: LazyJson): (readonly [string, unknown])[] {
  if (!event.body) return []
  const type = event.headers['content-type'] ?? ''
  const bytes = bytesOf(event)
  if (bytes.length > maxFormBytes) throw platformError('payload_too_large')
  if (jsonType.test(type)) return Object.entries(json())
  if (formType.test(type) && isUtf8(bytes)) return parseParameters(Buffer.from(bytes).toString(), 'body')
  const message = 'Send the parameters as a query, or as a form or JSON object in UTF-8 with its Content-Type.'
  throw new PlatformError('unsupported_media_type', message)
}

/**
 * Reads the body before schema validation. A use case that validates the body itself receives undefined if the body
 * cannot be read as a JSON object.
 */
export function readBody(endpoint: EndpointDefinition, json: LazyJson, event: GatewayEvent): unknown {
  if (!endpoint.validatesBody) return json()
  try {
    return json()
  } catch (error) {
    // A body beyond the JSON limits is rejected by the use case, after its other checks.
    return error instanceof PlatformError && error.code === 'validation_failed' ? parseJson(event) : undefined
  }
}

/**
 * Reads the query parameters by name, including those in the body of a callback. Rejects repeated names, because
 * parsers differ on which value they use.
 */
export function readQuery(endpoint: EndpointDefinition, event: GatewayEvent, json: LazyJson): Record<string, unknown> {
  const bodyParameters = takesForm(endpoint) ? readBodyParameters(event, json) : []
  const pairs = [...parseParameters(event.rawQueryString, 'query'), ...bodyParameters]
  const repeatedGroups = [...Map.groupBy(pairs, ([name]) => name)].filter(([, values]) => values.length > 1)
  if (repeatedGroups.length === 0) return Object.fromEntries(pairs)
  throw validationFailedError(
    repeatedGroups.map(([name]) => ({
      in: 'query',
      path: jsonPointer([name]),
      code: 'repeated',
      message: 'must be given once',
    })),
  )
}

/** Decodes parameters. Rejects invalid UTF-8, which `URLSearchParams` would replace. */
function parseParameters(text: string, part: ErrorDetail['in']): [string, string][] {
  try {
    decodeURIComponent(text.replaceAll(/%(?![0-9a-f]{2})/gi, '%25'))
  } catch {
    throw validationFailedError([
      { in: part, path: '', code: 'invalid_encoding', message: 'must be UTF-8, percent-encoded' },
    ])
  }
  return [...new URLSearchParams(text)]
}

/** Free-form JSON may be 16 levels deep, and starts at most four levels below the body. */
const maxDepth = 20
const maxDetails = 50

type JsonError = Pick<ErrorDetail, 'code' | 'message'>

const invalidUnicodeError = { code: 'invalid_unicode', message: 'must not contain lone surrogates' }
const unsafeNumberError = { code: 'unsafe_number', message: 'must be finite; integers must be within ±(2^53 - 1)' }
const tooDeepError = { code: 'too_deep', message: `must not be nested more than ${maxDepth} levels deep` }
const reservedNameError = { code: 'reserved_key', message: 'this name is reserved' }

// Checks the limits of every JSON body. The store or other programs would change or reject values beyond them.
function jsonLimitErrors(body: object): ErrorDetail[] {
  const details: ErrorDetail[] = []
  visitMembers(body, [], details)
  return details
}

type Path = (string | number)[]

// A body can have a million members, so numbers and short strings must be cheap to check.
function visitMembers(container: object, path: Path, details: ErrorDetail[]): void {
  if (Array.isArray(container)) {
    for (let index = 0; index < container.length; index++) visit(index, container[index], path, details)
    return
  }
  for (const [name, member] of Object.entries(container)) {
    const error = nameErrorOf(name)
    if (error) addDetail(error, [...path, name], details)
    else visit(name, member, path, details)
  }
}

function visit(name: string | number, value: unknown, path: Path, details: ErrorDetail[]): void {
  const error = valueErrorOf(value, path.length + 1)
  if (error) {
    addDetail(error, [...path, name], details)
  } else if (typeof value === 'object' && value !== null) {
    path.push(name)
    visitMembers(value, path, details)
    path.pop()
  }
}

function addDetail(error: JsonError, path: Path, details: ErrorDetail[]): void {
  if (details.length < maxDetails) details.push({ in: 'body', path: jsonPointer(path).toWellFormed(), ...error })
}

function valueErrorOf(value: unknown, depth: number): JsonError | undefined {
  if (typeof value === 'string') return value.isWellFormed() ? undefined : invalidUnicodeError
  if (typeof value === 'number') return isSafeNumber(value) ? undefined : unsafeNumberError
  if (typeof value === 'object' && value !== null && depth >= maxDepth) return tooDeepError
  return undefined
}

function nameErrorOf(name: string): JsonError | undefined {
  if (name === '__proto__') return reservedNameError
  return name.isWellFormed() ? undefined : invalidUnicodeError
}

const isSafeNumber = (value: number): boolean =>
  Number.isFinite(value) && (!Number.isInteger(value) || Number.isSafeInteger(value))

/** Headers of a request. Names are lower-case. */
export type RequestHeaders = Readonly<Record<string, string | undefined>>
