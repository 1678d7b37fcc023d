import { fault } from '@platform/core/fault'

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
const methods = new Set(['GET', 'POST', 'PUT', 'PATCH', 'DELETE'])

/**
 * What Hono routes by. Path, headers and body are read from the event: `Request` would normalise or refuse them. It
 * refuses methods too; one that no route has stands for them all.
 */
export function toRequest({ requestContext: { http } }: GatewayEvent): Request {
  return new Request('http://platform', { method: methods.has(http.method) ? http.method : 'OPTIONS' })
}

/** A response in the words of API Gateway. */
export async function toResult(response: Response): Promise<GatewayResult> {
  const { 'set-cookie': _, ...headers } = Object.fromEntries(response.headers)
  const cookies = response.headers.getSetCookie()
  return {
    statusCode: response.status,
    headers,
    ...(cookies.length > 0 && { cookies }),
    body: await response.text(),
    isBase64Encoded: false,
  }
}

/** The headers of a request, with its cookies among them as a browser has sent them. */
export const headersOf = ({ headers, cookies }: GatewayEvent): GatewayEvent['headers'] =>
  cookies === undefined ? headers : { ...headers, cookie: cookies.join('; ') }

const encodingOf = ({ isBase64Encoded }: GatewayEvent) => (isBase64Encoded ? 'base64' : 'utf8')

/** Refuses a body above 4 MiB (D35), before anything is made of it. */
export function refuseLargeBody(event: GatewayEvent): void {
  if (Buffer.byteLength(event.body ?? '', encodingOf(event)) > maximumBodyBytes) throw fault('payload_too_large')
}

/** The body as it was sent; empty where there is none. */
export const bytesOf = (event: GatewayEvent): Uint8Array => Buffer.from(event.body ?? '', encodingOf(event))
