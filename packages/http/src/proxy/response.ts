import { openedPageParameter } from '@platform/contract/portal-paths'
import { PlatformError, platformError } from '@platform/core/error'
import { log } from '@platform/core/log'
import { isUnder } from '@platform/core/modules/routes'
import type { GatewayEvent } from '../request.ts'
import { type HttpResponse, httpResponse } from '../response.ts'
import { moduleTargetOf } from './path.ts'
import { isHeaderSafe, pickSafeHeaders } from './request.ts'
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
  'x-total-count',
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

// Browsers never render content of these types as a document with scripts.
const inertTypePattern =
  /^(?:application\/(?:json|[\w.-]+\+json|x-ndjson|javascript|wasm)|text\/(?:plain|css|csv|javascript)|image\/(?:png|jpeg|gif|webp|avif|x-icon|vnd\.microsoft\.icon)|font\/\w+|(?:audio|video)\/[\w-]+)$/

const defaultType = 'application/octet-stream'
const statusesWithoutBody = new Set([204, 205, 304])

/**
 * Filters a response for the caller; `path` is the percent-encoded path of the request. Throws `module_failed` for an
 * invalid status, a stream of events, or a redirect to an address that is not below the module's paths.
 */
export function toClientResponse(response: ProxyResponse, owner: RouteOwner, path: string) {
  const { status, headers, body } = response
  if (!Number.isInteger(status) || status < 200 || status > 599) throw platformError('module_failed')
  const type = typeOf(headers['content-type'])
  if (type.essence === 'text/event-stream')
    throw rejectionError('streams events, but only whole responses are forwarded')
  const toOwnAddress = (address: string) => ownAddressOf(address, owner, path)
  const location = headers['location'] === undefined ? undefined : toOwnAddress(headers['location'])
  if (redirectStatuses.has(status) && headers['location'] !== undefined && location === undefined)
    throw rejectionError('redirects to an address that is not below its own paths', headers['location'])
  const link = headers['link'] === undefined ? undefined : ownLinks(headers['link'], toOwnAddress)
  for (const [name, value] of Object.entries({ location, link })) {
    if (value === undefined && headers[name] !== undefined) log('warn', 'a header of a module was removed', { name })
  }
  const hasBody = !statusesWithoutBody.has(status)
  // Browsers save an empty response of the default type as a file.
  const hasType = hasBody && (body.length > 0 || headers['content-type'] !== undefined)
  return {
    status,
    body: hasBody ? body : undefined,
    headers: {
      ...pickSafeHeaders(forwardedHeaders, headers),
      vary: [headers['vary'] ?? '', 'authorization', 'cookie', ...varyHeadersFor(path)]
        .filter((name) => name !== '' && isHeaderSafe(name))
        .join(', '),
      ...(location !== undefined && { location }),
      ...(link !== undefined && { link }),
      // In a response without a body, these headers would replace those of the body that the caller has cached.
      ...(hasType && { 'content-type': type.contentType, ...policyOf(type.essence) }),
    },
  }
}

const redirectStatuses = new Set([301, 302, 303, 307, 308])

// The log names the module and contains the address, so that the module author can find the cause.
const rejectionError = (reason: string, address?: string): PlatformError =>
  new PlatformError(
    'module_failed',
    `The module ${reason}. Contact the module author.`,
    {},
    { cause: { reason, address } },
  )

function policyOf(type: string): Record<string, string> {
  if (inertTypePattern.test(type)) return {}
  return { 'content-security-policy': type === 'text/html' ? pagePolicy : 'sandbox' }
}

// Normalises a content type, because browsers could interpret an unusual one differently and so bypass the policy.
function typeOf(value = ''): { essence: string; contentType: string } {
  const [, type = '', parameters = ''] = /^\s*([\w.+-]+\/[\w.+-]+)\s*(;[^,]*)?$/.exec(value) ?? []
  const essence = type.toLowerCase() || defaultType
  const charset = /;\s*charset="?([\w-]+)"?\s*(?:;|$)/i.exec(parameters)?.[1]
  return { essence, contentType: charset === undefined ? essence : `${essence}; charset=${charset}` }
}

// Returns undefined unless the address is below the module's paths, because clients may send credentials to the target.
function ownAddressOf(value: string, { moduleId, claim }: RouteOwner, path: string): string | undefined {
  const base = `http://module${path}`
  if (!URL.canParse(value, base)) return undefined
  const { origin, pathname, search, hash } = new URL(value, base)
  const isOwn = isUnder(pathname, `/modules/${moduleId}`) || isUnder(pathname, claim.apiBasePath)
  const address = pathname + search + hash
  return origin === 'http://module' && isOwn && isHeaderSafe(address) ? address : undefined
}

// Converts the addresses of `Link: <address>; rel="next", …`. Returns undefined if one is not the module's own.
function ownLinks(value: string, toOwnAddress: (address: string) => string | undefined): string | undefined {
  const links = value.replaceAll(/<([^<>]*)>/g, (_, address: string) => `<${toOwnAddress(address) ?? '<'}>`)
  return isHeaderSafe(links) && !/<<|<[^>]*$/.test(links) ? links : undefined
}

const pagesPath = '/modules/'

// The response for a module page depends on whether the request is a navigation, which `Sec-Fetch-Dest` shows.
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
    location: `/?${openedPageParameter}=${encodeURIComponent(moduleTargetOf(event))}`,
    vary: varyHeadersFor(event.rawPath).join(', '),
  })
