import { platformError } from '@platform/core/error'
import { isUnder } from '@platform/core/modules/path-prefix'
import { isHeaderSafe, proxyHeaders } from './headers.ts'
import type { RouteOwner } from './route-owner.ts'
import { varyHeadersFor } from '../portal/navigation.ts'

/** An answer as a module gives it. Header names are lower-case. */
export interface ProxyResponse {
  status: number
  headers: Readonly<Record<string, string>>
  body: Uint8Array
}

/** What a module may say about its answer. All else is the platform's to say, or nobody's (D48). */
const passed = [
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

/**
 * A page of a module has the address of the platform, and must not be taken for one of its pages: a browser runs it in an
 * origin of its own, where it sees nothing of the portal's, and lets it load from here only.
 */
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

/** Types that no browser makes a document of in which something could run. */
const inert =
  /^(?:application\/(?:json|[\w.-]+\+json|x-ndjson|javascript|wasm)|text\/(?:plain|css|csv|javascript)|image\/(?:png|jpeg|gif|webp|avif|x-icon|vnd\.microsoft\.icon)|font\/\w+|(?:audio|video)\/[\w-]+)$/

const unknownType = 'application/octet-stream'
const statusesWithoutBody = new Set([204, 205, 304])

/** What of an answer is handed on to the caller. Throws `module_failed` for one that is none. */
export function toClientResponse(answer: ProxyResponse, owner: RouteOwner, path: string) {
  const { status, headers } = answer
  if (!Number.isInteger(status) || status < 200 || status > 599) throw platformError('module_failed')
  const type = typeOf(headers['content-type'])
  const location = locationOf(headers['location'], owner, path)
  const hasBody = !statusesWithoutBody.has(status)
  return {
    status,
    body: hasBody ? answer.body : undefined,
    headers: {
      ...proxyHeaders(passed, headers),
      vary: [headers['vary'] ?? '', 'authorization', 'cookie', ...varyHeadersFor(path)]
        .filter((name) => name !== '' && isHeaderSafe(name))
        .join(', '),
      ...(location !== undefined && { location }),
      // One of these without a body would replace those of the body that the caller has kept.
      ...(hasBody && { 'content-type': type.full, ...policyOf(type.essence) }),
    },
  }
}

function policyOf(type: string): Record<string, string> {
  if (inert.test(type)) return {}
  return { 'content-security-policy': type === 'text/html' ? pagePolicy : 'sandbox' }
}

/**
 * The type of an answer, spelled anew: in a value that is written in a strange way a browser might find another type than
 * the one that the policy is chosen for.
 */
function typeOf(value = ''): { essence: string; full: string } {
  const [, type = '', parameters = ''] = /^\s*([\w.+-]+\/[\w.+-]+)\s*(;[^,]*)?$/.exec(value) ?? []
  const essence = type.toLowerCase() || unknownType
  const charset = /;\s*charset="?([\w-]+)"?\s*(?:;|$)/i.exec(parameters)?.[1]
  return { essence, full: charset === undefined ? essence : `${essence}; charset=${charset}` }
}

/** Where a module may send a caller: to one of its own paths. */
function locationOf(value: string | undefined, { moduleId, claim }: RouteOwner, path: string): string | undefined {
  const base = new URL('http://module')
  base.pathname = path
  if (value === undefined || !URL.canParse(value, base.href)) return undefined
  const { origin, pathname, search, hash } = new URL(value, base)
  const isOwn = isUnder(pathname, `/modules/${moduleId}`) || isUnder(pathname, claim.apiBasePath)
  return origin === base.origin && isOwn ? pathname + search + hash : undefined
}
