import { manifestBytes } from '@platform/contract/manifest'
import { now } from '../clock.ts'
import { PlatformError, platformError } from '../error.ts'
import { outboundFetch, checkUrl, type OutboundResponse, OutboundError } from '../outbound/outbound.ts'
import { hostPortOf } from '../lib/settings/allowlist.ts'
import { registryAllowlist } from './registries.ts'

/** Downloads an image's manifest from a URL of the caller. */

const redirects = 3
const timeoutMs = 10_000

/**
 * Downloads a manifest over https, or http where the settings allow the target, also for redirects. Throws
 * `url_not_allowed` or `image_unreachable`. Reads one byte more than allowed, to detect larger ones.
 */
export async function fetchManifest(address: string): Promise<Uint8Array> {
  const endMs = now() + timeoutMs
  let url = checked(address)
  for (let hop = 0; hop <= redirects; hop++) {
    const answer = await ask(url, endMs - now())
    const { location } = answer.headers
    const isRedirect = [301, 302, 303, 307, 308].includes(answer.status) && location !== undefined
    if (!isRedirect) return contentOf(answer)
    if (!URL.canParse(location, url.href)) throw unreadable('it redirects to an invalid URL')
    url = checked(new URL(location, url).href)
  }
  throw unreadable('too many redirects')
}

function checked(address: string): URL {
  try {
    const url = checkUrl(address, { allow: registryAllowlist })
    if (url.protocol === 'https:' || registryAllowlist.has(hostPortOf(url))) return url
  } catch (cause) {
    throw platformError('url_not_allowed', {}, { cause })
  }
  throw new PlatformError('url_not_allowed', 'The manifest URL must use https.')
}

async function ask(url: URL, leftMs: number): Promise<OutboundResponse> {
  if (leftMs <= 0) throw unreadable('timed_out')
  const request = { method: 'GET', headers: { accept: 'application/json' }, maxBytes: manifestBytes + 1 }
  try {
    return await outboundFetch(url.href, { ...request, timeoutMs: leftMs }, { allow: registryAllowlist })
  } catch (cause) {
    const problem = cause instanceof OutboundError ? cause.problem : 'connection_failed'
    if (problem === 'address_not_allowed') throw platformError('url_not_allowed', {}, { cause })
    throw unreadable(problem, { cause })
  }
}

function contentOf({ status, body }: OutboundResponse): Uint8Array {
  if (status !== 200) throw unreadable(`status ${status}`)
  return body
}

const unreadable = (reason: string, options?: ErrorOptions): PlatformError =>
  new PlatformError('image_unreachable', `The manifest could not be read: ${reason}. Check manifestUrl.`, {}, options)
