import { manifestBytes } from '@platform/contract/manifest'
import { elapsedMs } from '../clock.ts'
import { PlatformError, platformError } from '../error.ts'
import { outboundFetch, checkUrl, type OutboundResponse, OutboundError } from '../outbound/outbound.ts'
import { hostPortOf } from '../lib/settings/allowlist.ts'
import { registryAllowlist } from './registries.ts'

const maxRedirects = 3
const timeoutMs = 10_000

/**
 * Requires https, or http to targets that the settings allow; the same applies to redirects. Reads one byte more than
 * the limit, so that larger manifests are detected. Throws `url_not_allowed` or `image_unreachable`.
 */
export async function fetchManifest(address: string): Promise<Uint8Array> {
  const endMs = elapsedMs() + timeoutMs
  let url = checkManifestUrl(address)
  for (let hop = 0; hop <= maxRedirects; hop++) {
    const response = await requestManifest(url, endMs - elapsedMs())
    const { location } = response.headers
    const isRedirect = [301, 302, 303, 307, 308].includes(response.status) && location !== undefined
    if (!isRedirect) return contentOf(response)
    if (!URL.canParse(location, url.href)) throw unreadableError('it redirects to an invalid URL')
    url = checkManifestUrl(new URL(location, url).href)
  }
  throw unreadableError('too many redirects')
}

function checkManifestUrl(address: string): URL {
  try {
    const url = checkUrl(address, { allow: registryAllowlist })
    if (url.protocol === 'https:' || registryAllowlist.has(hostPortOf(url))) return url
  } catch (cause) {
    throw platformError('url_not_allowed', {}, { cause })
  }
  throw new PlatformError('url_not_allowed', 'The manifest URL must use https.')
}

async function requestManifest(url: URL, remainingMs: number): Promise<OutboundResponse> {
  if (remainingMs <= 0) throw unreadableError('timed_out')
  const request = { method: 'GET', headers: { accept: 'application/json' }, maxBytes: manifestBytes + 1 }
  try {
    return await outboundFetch(url.href, { ...request, timeoutMs: remainingMs }, { allow: registryAllowlist })
  } catch (cause) {
    const problem = cause instanceof OutboundError ? cause.problem : 'connection_failed'
    if (problem === 'address_not_allowed') throw platformError('url_not_allowed', {}, { cause })
    throw unreadableError(problem, { cause })
  }
}

function contentOf({ status, body }: OutboundResponse): Uint8Array {
  if (status !== 200) throw unreadableError(`status ${status}`)
  return body
}

const unreadableError = (reason: string, options?: ErrorOptions): PlatformError =>
  new PlatformError('image_unreachable', `The manifest could not be read: ${reason}. Check manifestUrl.`, {}, options)
