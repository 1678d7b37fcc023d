import type { GatewayEvent } from '@platform/http/request'
import type { GatewayHandler } from '@platform/http/response'
import { recordResponse } from '../conformance/support/seen-answers.ts'

export interface TestRequest {
  method?: string
  target: string
  headers?: Record<string, string>
  body?: string | Uint8Array
  address?: string
  /** Also passes the path as it was sent, as the one-machine gateway does. */
  hasSentPath?: true
}

export interface TestResponse {
  status: number
  headers: Record<string, string>
  cookies: string[]
  bytes: Buffer
  text: string
  json: any
}

const textType = /^(text\/.*|application\/(json|xml|javascript))$/

/** Returns the path as API Gateway decodes it, or unchanged if it cannot be decoded. */
export function decodedPath(path: string): string {
  try {
    return decodeURIComponent(path)
  } catch {
    return path
  }
}

/**
 * Creates the event of API Gateway: decoded path, lower-case header names, separate cookies, binary bodies in Base64.
 */
function gatewayEvent({
  method = 'GET',
  target,
  headers = {},
  body,
  address = '192.0.2.1',
  hasSentPath,
}: TestRequest): GatewayEvent {
  const [sentPath = '', rawQueryString = ''] = target.split('?', 2)
  const path = decodedPath(sentPath)
  const namedHeaders = Object.entries(headers).map(([name, value]) => [name.toLowerCase(), value] as const)
  const cookies = namedHeaders.filter(([name]) => name === 'cookie').flatMap(([, value]) => value.split(/; */))
  const fields = Object.fromEntries(namedHeaders.filter(([name]) => name !== 'cookie'))
  const isText = textType.test(fields['content-type']?.split(';')[0] ?? '')
  const event = {
    version: '2.0',
    routeKey: '$default',
    rawPath: path,
    ...(hasSentPath && { sentPath }),
    rawQueryString,
    ...(cookies.length > 0 && { cookies }),
    headers: { host: 'platform.example.com', 'x-forwarded-for': address, ...fields },
    requestContext: { http: { method, path, protocol: 'HTTP/1.1', sourceIp: address } },
    ...(body !== undefined && { body: Buffer.from(body).toString(isText ? 'utf8' : 'base64') }),
    isBase64Encoded: body !== undefined && !isText,
  }
  return event
}

export async function send(handler: GatewayHandler, sent: TestRequest): Promise<TestResponse> {
  const { statusCode, headers, cookies = [], body, isBase64Encoded } = await handler(gatewayEvent(sent))
  const bytes = Buffer.from(body, isBase64Encoded ? 'base64' : 'utf8')
  const text = bytes.toString()
  const json: any = headers['content-type'] === 'application/json' ? parsed(text) : undefined
  const { method = 'GET', target } = sent
  recordResponse({ method, path: decodedPath(target.split('?')[0] ?? ''), status: statusCode, error: json?.error })
  return { status: statusCode, headers, cookies, bytes, text, json }
}

export const jsonRequest = (target: string, body: unknown, headers: Record<string, string> = {}): TestRequest => ({
  method: 'POST',
  target,
  headers: { 'Content-Type': 'application/json', ...headers },
  body: typeof body === 'string' ? body : JSON.stringify(body),
})

/** Responses of modules may have invalid JSON. */
function parsed(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return undefined
  }
}
