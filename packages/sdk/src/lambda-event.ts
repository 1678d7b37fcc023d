import { isUtf8 } from 'node:buffer'

// An event of an API Gateway HTTP API, payload format 2.0.
interface HttpEvent {
  rawPath: string
  rawQueryString?: string
  headers?: Record<string, string>
  requestContext: { http: { method: string } }
  body?: string
  isBase64Encoded?: boolean
}

/** The response format of API Gateway for Lambda. */
export interface HttpResult {
  statusCode: number
  headers: Record<string, string>
  cookies?: string[]
  body: string
  isBase64Encoded: boolean
}

// Lambda allows responses of 6 MB. The difference is for headers and for the JSON encoding of the body.
const maxBodyBytes = 4 * 1024 * 1024

const isObject = (value: unknown): value is Record<string, unknown> => typeof value === 'object' && value !== null

const isHttpEvent = (event: unknown): event is HttpEvent =>
  isObject(event) &&
  typeof event['rawPath'] === 'string' &&
  isObject(event['requestContext']) &&
  isObject(event['requestContext']['http'])

/**
 * Converts an event to a request, or returns undefined if it is not an HTTP event. API Gateway has decoded the path.
 */
export function requestOf(event: unknown): Request | undefined {
  if (!isHttpEvent(event)) return undefined
  const { rawPath, rawQueryString = '', headers = {}, requestContext, body, isBase64Encoded } = event
  const url = new URL('http://module')
  url.pathname = rawPath
  url.search = rawQueryString
  const { method } = requestContext.http
  const isBodiless = body === undefined || method === 'GET' || method === 'HEAD'
  const content = isBodiless ? {} : { body: Buffer.from(body, isBase64Encoded === true ? 'base64' : 'utf8') }
  return new Request(url, { method, headers, ...content })
}

/** Converts a response to a Lambda result. A response with a body of more than 4 MiB becomes a 502 response. */
export async function resultOf(response: Response): Promise<HttpResult> {
  const body = Buffer.from(await response.arrayBuffer())
  if (body.length > maxBodyBytes) return tooLargeResult
  const { status, headers } = response
  const cookies = headers.getSetCookie()
  const isText = isUtf8(body)
  return {
    statusCode: status,
    headers: Object.fromEntries([...headers].filter(([name]) => name !== 'set-cookie')),
    ...(cookies.length > 0 && { cookies }),
    body: body.toString(isText ? 'utf8' : 'base64'),
    isBase64Encoded: !isText,
  }
}

const tooLargeResult: HttpResult = {
  statusCode: 502,
  headers: { 'content-type': 'application/json' },
  body: JSON.stringify({ error: 'answer_too_large', message: `The response is larger than ${maxBodyBytes} bytes.` }),
  isBase64Encoded: false,
}
