import { randomBytes } from 'node:crypto'
import type { Caller } from '@platform/core/caller'
import { platformError } from '@platform/core/error'
import { currentTraceId } from '@platform/core/log'
import { issueModuleToken } from '@platform/core/signing/access-token'
import { bytesOf, type GatewayEvent } from '../event.ts'
import { proxyHeaders } from './headers.ts'

/** A request as a module gets it. */
export interface ProxyRequest {
  method: string
  /** With its query; percent-encoded. */
  path: string
  headers: Readonly<Record<string, string>>
  body?: Uint8Array
}

/** What a module may know of a request. Credentials, addresses and whatever else says who asks are not among it (D48). */
const passed = [
  'accept',
  'accept-language',
  'content-language',
  'content-type',
  'idempotency-key',
  'if-match',
  'if-modified-since',
  'if-none-match',
  'if-range',
  'if-unmodified-since',
  'range',
]

/** The request for a module: the caller's, without what is not its business, and with a token that says who asks. */
export async function toModuleRequest(event: GatewayEvent, moduleId: string, caller: Caller): Promise<ProxyRequest> {
  const { method } = event.requestContext.http
  const isBodiless = !event.body || method === 'GET' || method === 'HEAD'
  return {
    method,
    path: encodedPath(event),
    headers: {
      ...proxyHeaders(passed, event.headers),
      traceparent: `00-${currentTraceId()}-${randomBytes(8).toString('hex')}-01`,
      'x-platform-user': await issueModuleToken(moduleId, caller),
    },
    ...(!isBodiless && { body: bytesOf(event) }),
  }
}

/**
 * Path and query of a request, percent-encoded. The path was decoded on its way here, and holds no percent sign any more; the
 * query is as it was sent.
 */
export function encodedPath({ rawPath, rawQueryString }: GatewayEvent): string {
  if (!rawPath.isWellFormed()) throw platformError('invalid_path')
  const path = rawPath.split('/').map(encodeURIComponent).join('/')
  const query = rawQueryString.toWellFormed().replaceAll(/[^\u0021-\u007e]|#/gu, encodeURIComponent)
  return query === '' ? path : `${path}?${query}`
}
