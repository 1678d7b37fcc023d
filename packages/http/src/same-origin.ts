import { platformError } from '@platform/core/error'
import type { RequestHeaders } from './cookie.ts'
import type { GatewayEvent } from './event.ts'

/**
 * Refuses what a page of another origin may have made the browser send. `SameSite` does not do: sibling domains, and all ports of
 * a machine, are one site. Throws `cross_origin_request`, or `https_required` for a page that came unprotected over a network.
 */
export function refuseCrossOrigin({ headers, requestContext }: GatewayEvent): void {
  const isReading = ['GET', 'HEAD'].includes(requestContext.http.method)
  if (!isSameOrigin(headers, isReading)) throw platformError('cross_origin_request')
  const page = URL.parse(headers['origin'] ?? '')
  if (page?.protocol === 'http:' && !isLoopback(page)) throw platformError('https_required')
}

/** `Sec-Fetch-Site` cannot be forged by a page, and is right behind any proxy. Older browsers tell the origin where it matters. */
function isSameOrigin({ 'sec-fetch-site': site, origin, host }: RequestHeaders, isReading: boolean): boolean {
  if (site !== undefined) return site === 'same-origin' || (site === 'none' && isReading)
  if (origin === undefined) return isReading
  const page = URL.parse(origin)
  return page !== null && URL.parse(`${page.protocol}//${host}`)?.host === page.host
}

/**
 * Whether the browser is on this very machine and speaks plain HTTP: some keep no `Secure` cookie then. Where it tells neither
 * its origin nor the page that asks, the host that it asks says so.
 */
export function isPlainLoopback({ origin, referer, host }: RequestHeaders): boolean {
  const page = URL.parse(origin ?? referer ?? `http://${host}`)
  return page?.protocol === 'http:' && isLoopback(page)
}

/** Names that never leave the machine; an address of IPv4 in the one form that a URL has. */
const isLoopback = ({ hostname }: URL): boolean => /^(?:(?:.+\.)?localhost|127(?:\.\d+){3}|\[::1\])$/.test(hostname)
