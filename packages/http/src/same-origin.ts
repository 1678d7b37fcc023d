import { portalConfiguration } from '@platform/core/dashboard/portal-configuration'
import { platformError } from '@platform/core/error'
import type { GatewayEvent, RequestHeaders } from './request.ts'

/**
 * Rejects requests that a page of another origin may have caused. `SameSite` is not sufficient, because sibling domains
 * and all ports of a host are one site. Throws `cross_origin_request`, or `https_required` for a page loaded over plain
 * HTTP from the network.
 */
export async function rejectCrossOrigin(
  { headers, requestContext }: GatewayEvent,
  readPublicUrl = loadPublicUrl,
): Promise<void> {
  const isRead = ['GET', 'HEAD'].includes(requestContext.http.method)
  const page = URL.parse(headers['origin'] ?? '')
  const isAccepted = isSameOrigin(headers, page, isRead) || (await isPublicOrigin(headers, page, readPublicUrl))
  if (!isAccepted) throw platformError('cross_origin_request')
  if (page?.protocol === 'http:' && !isLoopback(page)) throw platformError('https_required')
}

// Pages cannot set `Sec-Fetch-Site`. Browsers that do not send it send `Origin` for unsafe methods.
function isSameOrigin(
  { 'sec-fetch-site': site, origin, host }: RequestHeaders,
  page: URL | null,
  isRead: boolean,
): boolean {
  if (site !== undefined) return site === 'same-origin' || (site === 'none' && isRead)
  if (origin === undefined) return isRead
  return page !== null && URL.parse(`${page.protocol}//${host}`)?.host === page.host
}

const loadPublicUrl = async (): Promise<string> => (await portalConfiguration()).publicUrl ?? ''

// Compares with the public URL, because a proxy may replace `Host` or remove its port.
async function isPublicOrigin(
  { 'sec-fetch-site': site }: RequestHeaders,
  page: URL | null,
  readPublicUrl: () => Promise<string>,
): Promise<boolean> {
  if (site !== undefined || page === null || page.origin === 'null') return false
  return page.origin === URL.parse(await readPublicUrl())?.origin
}

/**
 * Whether the browser uses plain HTTP on loopback, where some browsers reject `Secure` cookies. `Origin` decides, or
 * `Referer` if it is absent; if both are absent, the `Host` header decides.
 */
export function isPlainLoopback({ origin, referer, host }: RequestHeaders): boolean {
  const page = URL.parse(origin ?? referer ?? `http://${host}`)
  return page?.protocol === 'http:' && isLoopback(page)
}

// Browsers resolve `localhost` and its subdomains to this machine. `URL` has normalised IPv4 addresses.
const isLoopback = ({ hostname }: URL): boolean => /^(?:(?:.+\.)?localhost|127(?:\.\d+){3}|\[::1\])$/.test(hostname)
