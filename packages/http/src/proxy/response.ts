import { openedPage } from '@platform/contract/portal-paths'
import { platformError } from '@platform/core/error'
import { isUnder } from '@platform/core/modules/routes'
import type { GatewayEvent } from '../request.ts'
import { type HttpResponse, httpResponse } from '../response.ts'
import { isHeaderSafe, proxyHeaders, encodedPath } from './request.ts'
import type { RouteOwner } from './route-owner.ts'

/** A response as a module returns it. Header names are lower-case. */
export interface ProxyResponse {
  status: number
  headers: Readonly<Record<string, string>>
  body: Uint8Array
}

const forwardedHeaders = [
  'accept-ranges',
  'allow',
  'cache-control',
  'content-disposition',
  'content-encoding',
  'content-language',
  'content-range',
  'etag',
  'expires',
  'last-modified',
  'retry-after',
]

// Module pages are served from the platform's host. The sandbox gives them an opaque origin without access to the
// portal, and they can load resources only from this host.
const pagePolicy = [
  'sandbox allow-scripts allow-forms',
  "default-src 'self'",
  "script-src 'self' 'unsafe-inline'",
  "style-src 'self' 'unsafe-inline'",
  "img-src 'self' data:",
  "object-src 'none'",
  "base-uri 'none'",
  "form-action 'self'",
  "frame-ancestors 'self'",
].join('; ')

// Browsers never render these types as a document with active content.
const inertTypes =
  /^(?:application\/(?:json|[\w.-]+\+json|x-ndjson|javascript|wasm)|text\/(?:plain|css|csv|javascript)|image\/(?:png|jpeg|gif|webp|avif|x-icon|vnd\.microsoft\.icon)|font\/\w+|(?:audio|video)\/[\w-]+)$/

const unknownType = 'application/octet-stream'
const statusesWithoutBody = new Set([204, 205, 304])

/** The filtered response for the caller. Throws `module_failed` if the status is invalid. */
export function toClientResponse(response: ProxyResponse, owner: RouteOwner, path: string) {
  const { status, headers } = response
  if (!Number.isInteger(status) || status < 200 || status > 599) throw platformError('module_failed')
  const type = typeOf(headers['content-type'])
  const location = locationOf(headers['location'], owner, path)
  const hasBody = !statusesWithoutBody.has(status)
  return {
    status,
    body: hasBody ? response.body : undefined,
    headers: {
      ...proxyHeaders(forwardedHeaders, headers),
      vary: [headers['vary'] ?? '', 'authorization', 'cookie', ...varyHeadersFor(path)]
        .filter((name) => name !== '' && isHeaderSafe(name))
        .join(', '),
      ...(location !== undefined && { location }),
      // Without a body, these headers would replace those of the body that the caller has cached.
      ...(hasBody && { 'content-type': type.full, ...policyOf(type.essence) }),
    },
  }
}

function policyOf(type: string): Record<string, string> {
  if (inertTypes.test(type)) return {}
  return { 'content-security-policy': type === 'text/html' ? pagePolicy : 'sandbox' }
}

// Browsers may interpret an unusual content type differently and so bypass the policy, so the type is normalised.
function typeOf(value = ''): { essence: string; full: string } {
  const [, type = '', parameters = ''] = /^\s*([\w.+-]+\/[\w.+-]+)\s*(;[^,]*)?$/.exec(value) ?? []
  const essence = type.toLowerCase() || unknownType
  const charset = /;\s*charset="?([\w-]+)"?\s*(?:;|$)/i.exec(parameters)?.[1]
  return { essence, full: charset === undefined ? essence : `${essence}; charset=${charset}` }
}

// Modules may redirect only to their own paths.
function locationOf(value: string | undefined, { moduleId, claim }: RouteOwner, path: string): string | undefined {
  const base = new URL('http://module')
  base.pathname = path
  if (value === undefined || !URL.canParse(value, base.href)) return undefined
  const { origin, pathname, search, hash } = new URL(value, base)
  const isOwn = isUnder(pathname, `/modules/${moduleId}`) || isUnder(pathname, claim.apiBasePath)
  return origin === base.origin && isOwn ? pathname + search + hash : undefined
}

const pagesPath = '/modules/'

// A request for a module page is answered differently if it is a navigation, which `Sec-Fetch-Dest` shows.
const varyHeadersFor = (path: string): string[] => (path.startsWith(pagesPath) ? ['sec-fetch-dest'] : [])

/** Whether a browser navigates to a module page at the top level, not in a frame. */
export const isPageNavigation = ({ rawPath, headers, requestContext }: GatewayEvent): boolean =>
  rawPath.startsWith(pagesPath) && requestContext.http.method === 'GET' && headers['sec-fetch-dest'] === 'document'

/**
 * Redirects to the portal, which shows the module page in a frame. This function does not serve the portal's page
 * itself, because during an update its version could refer to files that the portal function does not have.
 */
export const redirectToPortal = (event: GatewayEvent): HttpResponse =>
  httpResponse(302, null, {
    location: `/?${openedPage}=${encodeURIComponent(encodedPath(event))}`,
    vary: varyHeadersFor(event.rawPath).join(', '),
  })
