import { portalPaths } from '@platform/contract/portal-paths'
import { platformError } from '@platform/core/error'
import { createApp, toHonoHandler } from '../app.ts'
import type { HttpContext } from '../context.ts'
import type { GatewayEvent } from '../request.ts'
import {
  type HttpResponse,
  httpResponse,
  respondToOtherMethod,
  type GatewayResult,
  toResult,
  matchesEtag,
} from '../response.ts'
import { type WithVersionProbe, withVersionProbe } from '../version-probe.ts'
import { type Encoding, type PortalFile, type PortalFiles, unpackFiles, encodings } from './pack.ts'
import { shellHeaders } from './policy.ts'

/**
 * Creates the Lambda function for all paths without a route. It serves the portal's files, and the portal's page for
 * browser navigations. Other requests fail with `route_not_found`. The first pack that `load` returns is cached for the
 * lifetime of the process.
 */
export function servePortal(load: () => Promise<Uint8Array>): WithVersionProbe<GatewayEvent, GatewayResult> {
  let cachedFiles: Promise<PortalFiles> | undefined
  const loadFiles = () => {
    cachedFiles ??= load().then(unpackFiles)
    // A failed load is not cached, so that the next request retries it.
    cachedFiles.catch(() => (cachedFiles = undefined))
    return cachedFiles
  }
  const app = createApp((hono) => hono.use(toHonoHandler((context) => perform(context, loadFiles))))
  return withVersionProbe(async (event) => toResult(await app(event)))
}

async function perform(context: HttpContext, load: () => Promise<PortalFiles>): Promise<HttpResponse> {
  const { event } = context.env
  const { rawPath } = event
  const { shell, files } = await load()
  const file = files.get(rawPath)
  const { method } = event.requestContext.http
  if (method !== 'GET' && method !== 'HEAD') {
    if (file !== undefined || isPortalPath(rawPath)) return respondToOtherMethod(method, ['GET'])
    throw platformError('route_not_found')
  }
  if (file !== undefined) return respond(context, file, fileHeaders(rawPath, file))
  if (!isNavigation(event)) throw platformError('route_not_found')
  const headers = { vary: 'accept, accept-encoding', ...shellHeaders(event.headers['x-forwarded-proto']) }
  // The portal itself shows a "not found" page, so the portal's page is also the body of a 404 response.
  return isPortalPath(rawPath)
    ? respond(context, shell, { ...noCacheHeaders, ...headers })
    : contentResponse(context, 404, shell, headers)
}

/**
 * Whether the request is a browser navigation. A missing hashed file belongs to another version, so its request never
 * receives the page.
 */
const isNavigation = ({ rawPath, headers }: GatewayEvent): boolean =>
  rawPath === '/' || (!rawPath.startsWith(hashedFolder) && /\btext\/html\b/i.test(headers['accept'] ?? ''))

// `no-cache` lets caches store the response but revalidate it before each use.
const noCacheHeaders = { 'cache-control': 'no-cache' }
const immutableHeaders = { 'cache-control': 'public, max-age=31536000, immutable' }

// Module pages have an opaque origin and may load this file.
const modulePageStyle = '/module-page.css'

const fileHeaders = (path: string, { isHashed }: PortalFile): Record<string, string> => ({
  vary: 'accept-encoding',
  'cross-origin-resource-policy': path === modulePageStyle ? 'cross-origin' : 'same-origin',
  ...(isHashed ? immutableHeaders : noCacheHeaders),
})

function respond(context: HttpContext, file: PortalFile, headers: Record<string, string>): HttpResponse {
  const encoding = encodingOf(context, file)
  // An ETag identifies one sequence of bytes, so each encoding has its own.
  const etag = encoding === 'identity' ? `"${file.tag}"` : `"${file.tag}-${encoding}"`
  const taggedHeaders = { etag, ...headers }
  return matchesEtag(etag, context)
    ? httpResponse(304, null, taggedHeaders)
    : contentResponse(context, 200, file, taggedHeaders)
}

function contentResponse(
  context: HttpContext,
  status: number,
  file: PortalFile,
  headers: Record<string, string>,
): HttpResponse {
  const encoding = encodingOf(context, file)
  return httpResponse(status, file.bodies[encoding] ?? null, {
    'content-type': file.contentType,
    ...(encoding !== 'identity' && { 'content-encoding': encoding }),
    ...headers,
  })
}

const encodingOf = ({ env: { event } }: HttpContext, file: PortalFile): Encoding =>
  negotiateEncoding(event.headers['accept-encoding'], file)

// Returns the smallest encoding that the client accepts (`Accept-Encoding`, RFC 9110).
function negotiateEncoding(accepted: string | undefined, { bodies }: PortalFile): Encoding {
  const weights = new Map((accepted ?? '').split(',').map(weightOf))
  const isAccepted = (encoding: Encoding) => (weights.get(encoding) ?? weights.get('*') ?? 0) > 0
  // Unencoded content is better than an error, even if the client excludes it.
  return encodings.find((each) => bodies[each] !== undefined && isAccepted(each)) ?? 'identity'
}

// Parses an element of `Accept-Encoding`, such as `gzip;q=0.8`.
function weightOf(part: string): readonly [name: string, weight: number] {
  const [name = '', ...parameters] = part.split(';').map((each) => each.trim().toLowerCase())
  const weight = parameters.find((each) => each.startsWith('q='))?.slice('q='.length)
  return [name, weight === undefined ? 1 : Number(weight)]
}

export const hashedFolder = '/assets/'

const portalPathPatterns = portalPaths.map((path) => new RegExp(`^${path.replaceAll(/\{\w+\}/g, '[^/]+')}/?$`))

const isPortalPath = (path: string): boolean => portalPathPatterns.some((pattern) => pattern.test(path))
