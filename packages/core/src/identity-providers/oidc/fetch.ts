import { type CustomFetch, type CustomFetchOptions } from 'openid-client'
import { outboundFetch, checkUrl, isAllowlisted, OutboundError } from '../../outbound/outbound.ts'

/** How the platform talks to OpenID providers: through its one way out, and with https, whatever their metadata name. */

const timeoutMs = 5000
const maxBytes = 1024 * 1024
const bodiless = new Set([204, 205, 304])

/** An address may go without TLS where the operator has named its host and port. */
export const allowsPlainHttp = (url: URL): boolean => url.protocol === 'http:' && isAllowlisted(url)

/** The address of a provider as one that may be called, as far as its text tells. Throws `OutboundFailure`. */
export function checkProviderUrl(address: string): URL {
  const url = checkUrl(address)
  if (url.protocol !== 'https:' && !allowsPlainHttp(url)) throw new OutboundError('url_not_allowed')
  return url
}

/**
 * Takes the place of `fetch`. Throws `OutboundFailure` where there is no answer within five seconds, and an `Error` for one
 * of more than 1 MiB. Redirects are answers.
 */
export const guardedFetch: CustomFetch = async (address, { method, headers, body }) => {
  checkProviderUrl(address)
  // The platform tells its own name.
  const { 'user-agent': _, ...sent } = headers
  const answer = await outboundFetch(address, { method, headers: sent, body: textOf(body), timeoutMs, maxBytes })
  const { status, isCutShort } = answer
  if (isCutShort) throw new Error('The provider answers more than 1 MiB.')
  if (status < 200 || status > 599) throw new Error(`The provider answers with the status ${status}.`)
  return new Response(bodiless.has(status) ? null : new Uint8Array(answer.body), {
    status,
    headers: { 'content-type': answer.headers['content-type'] ?? '' },
  })
}

/** The library sends forms only. */
const textOf = (body: CustomFetchOptions['body']): string =>
  body instanceof URLSearchParams || typeof body === 'string' ? body.toString() : ''
