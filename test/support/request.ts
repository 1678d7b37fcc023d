import type { GatewayEvent } from '@platform/http/request'
import type { GatewayHandler } from '@platform/http/response'
import { recordResponse } from '../conformance/support/seen-answers.ts'

/** A request as a client sends it. */
export interface TestRequest {
  method?: string
  /** The request target: percent-encoded, with its query. */
  target: string
  headers?: Record<string, string>
  body?: string | Uint8Array
  address?: string
}

/** An answer as a client sees it. */
export interface TestResponse {
  status: number
  headers: Record<string, string>
  /** What the answer sets, one `Set-Cookie` each. */
  cookies: string[]
  bytes: Buffer
  text: string
  /** The body where it is JSON. */
  json: any
}

const textType = /^(text\/.*|application\/(json|xml|javascript))$/

/** A path as API Gateway hands it on; as it was sent where it is no encoding of anything. */
export function decodedPath(path: string): string {
  try {
    return decodeURIComponent(path)
  } catch {
    return path
  }
}

/** The event that API Gateway makes of a request: decoded path, lower-case names, cookies apart, bytes in Base64. */
function gatewayEvent({
  method = 'GET',
  target,
  headers = {},
  body,
  address = '192.0.2.1',
}: TestRequest): GatewayEvent {
  const [sentPath = '', rawQueryString = ''] = target.split('?', 2)
  const path = decodedPath(sentPath)
  const named = Object.entries(headers).map(([name, value]) => [name.toLowerCase(), value] as const)
  const cookies = named.filter(([name]) => name === 'cookie').flatMap(([, value]) => value.split(/; */))
  const fields = Object.fromEntries(named.filter(([name]) => name !== 'cookie'))
  const isText = textType.test(fields['content-type']?.split(';')[0] ?? '')
  const event = {
    version: '2.0',
    routeKey: '$default',
    rawPath: path,
    rawQueryString,
    ...(cookies.length > 0 && { cookies }),
    headers: { host: 'platform.example.com', 'x-forwarded-for': address, ...fields },
    requestContext: { http: { method, path, protocol: 'HTTP/1.1', sourceIp: address } },
    ...(body !== undefined && { body: Buffer.from(body).toString(isText ? 'utf8' : 'base64') }),
    isBase64Encoded: body !== undefined && !isText,
  }
  return event
}

/** Sends a request to a function. */
export async function send(handler: GatewayHandler, sent: TestRequest): Promise<TestResponse> {
  const { statusCode, headers, cookies = [], body, isBase64Encoded } = await handler(gatewayEvent(sent))
  const bytes = Buffer.from(body, isBase64Encoded ? 'base64' : 'utf8')
  const text = bytes.toString()
  const json: any = headers['content-type'] === 'application/json' ? parsed(text) : undefined
  const { method = 'GET', target } = sent
  recordResponse({ method, path: decodedPath(target.split('?')[0] ?? ''), status: statusCode, error: json?.error })
  return { status: statusCode, headers, cookies, bytes, text, json }
}

/** A request with a JSON body. */
export const jsonRequest = (target: string, body: unknown, headers: Record<string, string> = {}): TestRequest => ({
  method: 'POST',
  target,
  headers: { 'Content-Type': 'application/json', ...headers },
  body: typeof body === 'string' ? body : JSON.stringify(body),
})

/** The platform's own answers are JSON where they say so; what a module says is its business. */
function parsed(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return undefined
  }
}
