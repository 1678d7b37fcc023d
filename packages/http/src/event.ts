import { isUtf8 } from 'node:buffer'
import { platformError } from '@platform/core/error'
import type { HttpResponse } from './response.ts'

/** The parts of an API Gateway event (HTTP API, payload 2.0) that requests are made of. Header names are lower-case. */
export interface GatewayEvent {
  /** Decoded: `%2F` arrives as `/`. */
  rawPath: string
  rawQueryString: string
  headers: Readonly<Record<string, string | undefined>>
  /** `name=value` each; they are not among the headers. */
  cookies?: readonly string[]
  body?: string
  isBase64Encoded: boolean
  requestContext: { http: { method: string; sourceIp: string } }
}

/** What API Gateway makes an HTTP response of. */
export interface GatewayResult {
  statusCode: number
  headers: Record<string, string>
  /** What would be several `Set-Cookie` headers; absent where there is none. */
  cookies?: string[]
  body: string
  isBase64Encoded: boolean
}

/** The signature of a Lambda function that serves part of the API. */
export type GatewayHandler = (event: GatewayEvent) => Promise<GatewayResult>

const maximumBodyBytes = 4 * 1024 * 1024

/** A reply in the words of API Gateway. A text stays one; `isBase64Encoded` says what became of bytes. */
export function toResult({ status, headers, cookies = [], body }: HttpResponse): GatewayResult {
  const isBase64Encoded = body !== null && typeof body !== 'string' && !isText(body)
  return {
    statusCode: status,
    headers: { ...headers },
    ...(cookies.length > 0 && { cookies: [...cookies] }),
    // Half of a character does not come through JSON to every gateway.
    body:
      typeof body === 'string'
        ? body.toWellFormed()
        : Buffer.from(body ?? '').toString(isBase64Encoded ? 'base64' : 'utf8'),
    isBase64Encoded,
  }
}

/** A text that is large could grow sixfold on Lambda's wire, where Base64 grows by a third. */
const textLimitBytes = 64 * 1024

const isText = (body: Uint8Array): boolean => body.length <= textLimitBytes && isUtf8(body)

/** The headers of a request, with its cookies among them as a browser has sent them. */
export const headersOf = ({ headers, cookies }: GatewayEvent): GatewayEvent['headers'] =>
  cookies === undefined ? headers : { ...headers, cookie: cookies.join('; ') }

const encodingOf = ({ isBase64Encoded }: GatewayEvent) => (isBase64Encoded ? 'base64' : 'utf8')

/** Refuses a body above 4 MiB (D35), before anything is made of it. */
export function refuseLargeBody(event: GatewayEvent): void {
  if (Buffer.byteLength(event.body ?? '', encodingOf(event)) > maximumBodyBytes)
    throw platformError('payload_too_large')
}

/** The body as it was sent; empty where there is none. */
export const bytesOf = (event: GatewayEvent): Uint8Array => Buffer.from(event.body ?? '', encodingOf(event))
