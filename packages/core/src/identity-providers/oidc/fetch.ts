import type { CustomFetch, CustomFetchOptions } from 'openid-client'
import { InvalidResponse } from './errors.ts'
import { outboundFetch, checkUrl, isAllowlisted, OutboundError } from '../../outbound/outbound.ts'

const timeoutMs = 5000
const maxBytes = 1024 * 1024
const bodilessStatuses = new Set([204, 205, 304])

export const allowsPlainHttp = (url: URL): boolean => url.protocol === 'http:' && isAllowlisted(url)

export function checkProviderUrl(address: string): URL {
  const url = checkUrl(address)
  if (url.protocol !== 'https:' && !allowsPlainHttp(url)) throw new OutboundError('url_not_allowed')
  return url
}

/**
 * Replaces `fetch` in `openid-client`. Throws if the response is not complete after five seconds, or if its body
 * exceeds 1 MiB. Does not follow redirects.
 */
export const guardedFetch: CustomFetch = async (address, { method, headers, body }) => {
  checkProviderUrl(address)
  // The outbound guard sets the platform's user agent.
  const { 'user-agent': _, ...requestHeaders } = headers
  const response = await outboundFetch(address, {
    method,
    headers: requestHeaders,
    body: formText(body),
    timeoutMs,
    maxBytes,
  })
  const { status, isCutShort } = response
  if (isCutShort) throw new InvalidResponse("The issuer's response exceeds 1 MiB.")
  if (status < 200 || status > 599) throw new InvalidResponse(`An address of the issuer returned status ${status}.`)
  return new Response(bodilessStatuses.has(status) ? null : new Uint8Array(response.body), {
    status,
    headers: { 'content-type': response.headers['content-type'] ?? '', date: response.headers['date'] ?? '' },
  })
}

/** The library sends only forms. */
const formText = (body: CustomFetchOptions['body']): string =>
  body instanceof URLSearchParams || typeof body === 'string' ? body.toString() : ''
