import { randomBytes } from 'node:crypto'
import type { Caller } from '@platform/core/caller'
import { currentTraceId } from '@platform/core/log'
import { issueModuleToken } from '@platform/core/signing/access-token'
import { bytesOf, type GatewayEvent } from '../request.ts'
import { moduleTargetOf } from './path.ts'
import type { RouteOwner } from './route-owner.ts'

export interface ProxyRequest {
  method: string
  /** The percent-encoded path with the query. */
  path: string
  headers: Readonly<Record<string, string>>
  body?: Uint8Array
}

// Credentials and addresses are not forwarded.
const forwardedHeaders = [
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

/** Converts a request for a module: filters the headers and adds a token that identifies the caller. */
export async function toModuleRequest(
  event: GatewayEvent,
  { moduleId, claim }: RouteOwner,
  caller: Caller,
): Promise<ProxyRequest> {
  const { method } = event.requestContext.http
  const hasNoBody = !event.body || method === 'GET' || method === 'HEAD'
  return {
    method,
    path: moduleTargetOf(event),
    headers: {
      ...pickSafeHeaders(forwardedHeaders, event.headers),
      traceparent: `00-${currentTraceId()}-${randomBytes(8).toString('hex')}-01`,
      'x-platform-user': await issueModuleToken(moduleId, {
        ...caller,
        permissions: visiblePermissionsOf(caller, claim),
      }),
    },
    ...(!hasNoBody && { body: bytesOf(event) }),
  }
}

/** Returns the permissions of the caller that the manifest of the module requires. */
const visiblePermissionsOf = ({ permissions }: Caller, { permissions: required = [] }: RouteOwner['claim']) =>
  new Set([...permissions].filter((permission) => required.includes(permission)))

/** Whether a header value is safe to forward. A line break could start a second header. */
export const isHeaderSafe = (value: string): boolean => /^[\t\u0020-\u007e\u0080-\u00ff]*$/.test(value)

/** Returns those of the named headers that are present and safe to forward. */
export const pickSafeHeaders = (
  names: readonly string[],
  headers: Readonly<Record<string, string | undefined>>,
): Record<string, string> =>
  Object.fromEntries(
    names.flatMap((name) => {
      const value = headers[name]
      return value !== undefined && isHeaderSafe(value) ? [[name, value]] : []
    }),
  )
