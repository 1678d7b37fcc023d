import type { IncomingMessage } from 'node:http'
import { platformError } from '@platform/core/error'
import { localAccountId } from '../emulators/http/environment.ts'
import { eventBody } from './body.ts'
import { eventHeaders, eventQuery } from './fields.ts'
import type { Match } from './routes.ts'
import type { Sender } from './sender.ts'
import type { Target } from './target.ts'

/** The event of API Gateway (HTTP API, payload format 2.0). Members without a value are absent. */
export interface HttpEvent {
  version: '2.0'
  routeKey: string
  /** Percent-decoded, despite its name. */
  rawPath: string
  /** Not part of API Gateway: the path as it was sent, for modules. */
  sentPath: string
  rawQueryString: string
  cookies?: string[]
  /** Names in lower case; repeated headers are joined by commas. */
  headers: Record<string, string>
  queryStringParameters?: Record<string, string>
  pathParameters?: Record<string, string>
  requestContext: RequestContext
  body?: string
  isBase64Encoded: boolean
  /** Not part of API Gateway: the function only authenticates the caller, and later receives the whole request. */
  isBodyPending?: true
}

export interface RequestContext {
  accountId: string
  apiId: string
  domainName: string
  domainPrefix: string
  http: { method: string; path: string; protocol: string; sourceIp: string; userAgent: string }
  requestId: string
  routeKey: string
  stage: '$default'
  time: string
  timeEpoch: number
}

export interface ReadRequest {
  request: IncomingMessage
  target: Target
  match: Match
  sender: Sender
  bytes: Buffer
  isBodyPending?: true
  traceId: string
  requestId: string
}

/** Lambda's limit for events and responses. */
export const maxPayloadBytes = 6 * 1024 * 1024

/** Throws `payload_too_large` for a request that exceeds Lambda's limit. */
export function httpEvent(read: ReadRequest): HttpEvent {
  const { request, target, match, sender, bytes, isBodyPending, traceId, requestId } = read
  const { functionName: _function, ...route } = match
  const event: HttpEvent = {
    version: '2.0',
    ...route,
    rawPath: target.path,
    sentPath: target.sentPath,
    rawQueryString: target.query,
    ...eventHeaders(request, sender, traceId),
    ...eventQuery(target.query),
    requestContext: requestContext({ request, target, match, sender, requestId }),
    ...eventBody(bytes, request.headers['content-type']),
    ...(isBodyPending && { isBodyPending }),
  }
  if (payloadBytes(event, event.body) > maxPayloadBytes) throw platformError('payload_too_large')
  return event
}

/** Returns the serialized size. If the body is so small that the limit is out of reach, returns only its length. */
export function payloadBytes(payload: object, body = ''): number {
  const mayBeLarge = body.length > maxPayloadBytes / 8
  return mayBeLarge ? Buffer.byteLength(JSON.stringify(payload)) : body.length
}

type RoutedRequest = Omit<ReadRequest, 'bytes' | 'isBodyPending' | 'traceId'>

function requestContext({
  request,
  target: { path },
  match: { routeKey },
  sender,
  requestId,
}: RoutedRequest): RequestContext {
  const timeEpoch = Date.now()
  return {
    accountId: localAccountId,
    apiId: 'local',
    domainName: 'localhost',
    domainPrefix: 'localhost',
    http: {
      method: request.method ?? '',
      path,
      protocol: `HTTP/${request.httpVersion}`,
      sourceIp: sender.address,
      userAgent: request.headers['user-agent'] ?? '',
    },
    requestId,
    routeKey,
    stage: '$default',
    time: commonLogTime(timeEpoch),
    timeEpoch,
  }
}

/** Common log format: `12/Mar/2020:19:03:58 +0000`. */
function commonLogTime(timeMs: number): string {
  const [, day, month, year, time] = new Date(timeMs).toUTCString().split(' ')
  return `${day}/${month}/${year}:${time} +0000`
}
