import { platformError } from '@platform/core/error'
import { createApp, toHonoHandler } from '../app.ts'
import type { HttpContext } from '../context.ts'
import { type GatewayEvent, type GatewayResult, toResult } from '../event.ts'
import { type WithVersionProbe, withVersionProbe } from '../version-probe.ts'
import { type HttpResponse, httpResponse } from '../response.ts'
import { matchesEtag } from '../to-response.ts'
import { encodingFor } from './encoding.ts'
import { type Encoding, type PortalFile, type PortalFiles, unpackFiles } from './pack.ts'
import { hashedFolder, isPortalPath } from './paths.ts'
import { shellHeaders } from './policy.ts'

/**
 * One Lambda function that answers what no route does: with a file of the portal, with its page where a browser navigates, and
 * with `route_not_found` otherwise. `load` gets what `packed` has made, once in a process. No store calls.
 */
export function servePortal(load: () => Promise<Uint8Array>): WithVersionProbe<GatewayEvent, GatewayResult> {
  let held: Promise<PortalFiles> | undefined
  const files = () => {
    held ??= load().then(unpackFiles)
    // The next request tries again.
    held.catch(() => (held = undefined))
    return held
  }
  const app = createApp((it) => it.use(toHonoHandler((context) => perform(context, files))))
  return withVersionProbe(async (event) => toResult(await app(event)))
}

async function perform(context: HttpContext, load: () => Promise<PortalFiles>): Promise<HttpResponse> {
  const { event } = context.env
  const { rawPath } = event
  if (!isReading(event)) throw platformError('route_not_found')
  const { shell, files } = await load()
  const file = files.get(rawPath)
  if (file !== undefined) return fresh(context, file, fileHeaders(file))
  if (!isNavigation(event)) throw platformError('route_not_found')
  const headers = { vary: 'accept, accept-encoding', ...shellHeaders(event.headers['x-forwarded-proto']) }
  // Where there is no such page, the portal says so.
  return isPortalPath(rawPath)
    ? fresh(context, shell, { ...askedFor, ...headers })
    : whole(context, 404, shell, headers)
}

const isReading = ({ requestContext: { http } }: GatewayEvent): boolean =>
  http.method === 'GET' || http.method === 'HEAD'

/** Whether a page is wanted. A file that is missing is of another version: the page in its place would be run as a script. */
const isNavigation = ({ rawPath, headers }: GatewayEvent): boolean =>
  rawPath === '/' || (!rawPath.startsWith(hashedFolder) && /\btext\/html\b/i.test(headers['accept'] ?? ''))

/** May be kept, and is asked about before each use. */
const askedFor = { 'cache-control': 'no-cache' }
const keptForever = { 'cache-control': 'public, max-age=31536000, immutable' }

const fileHeaders = ({ isHashed }: PortalFile): Record<string, string> => ({
  vary: 'accept-encoding',
  'cross-origin-resource-policy': 'same-origin',
  ...(isHashed ? keptForever : askedFor),
})

/** A file, unless the caller has it. */
function fresh(context: HttpContext, file: PortalFile, headers: Record<string, string>): HttpResponse {
  const encoding = encodingOf(context, file)
  // A tag is of one sequence of bytes.
  const etag = encoding === 'identity' ? `"${file.tag}"` : `"${file.tag}-${encoding}"`
  const named = { etag, ...headers }
  return matchesEtag(etag, context) ? httpResponse(304, null, named) : whole(context, 200, file, named)
}

/** The content of a file; HEAD gets all but that. */
function whole(context: HttpContext, status: number, file: PortalFile, headers: Record<string, string>): HttpResponse {
  const encoding = encodingOf(context, file)
  const body = context.env.event.requestContext.http.method === 'HEAD' ? null : (file.bodies[encoding] ?? null)
  return httpResponse(status, body, {
    'content-type': file.contentType,
    ...(encoding !== 'identity' && { 'content-encoding': encoding }),
    ...headers,
  })
}

const encodingOf = ({ env: { event } }: HttpContext, file: PortalFile): Encoding =>
  encodingFor(event.headers['accept-encoding'], file)
