import { type BrowserSession } from '@platform/contract/browser-session'
import { refreshTokenSeconds, type TokenSet } from '@platform/contract/auth'
import { PlatformError, platformError } from '@platform/core/error'
import type * as z from 'zod'
import { type Result, result } from './result.ts'
import { cookieOf, type RequestHeaders } from './cookie.ts'
import { isPlainLoopback } from './same-origin.ts'

/**
 * The cookies that hold the tokens of a browser. Their names begin with `__Host-`, so that no neighbour on a sibling domain can
 * put a session of its own there; over plain HTTP on loopback they do not, as some browsers keep no such cookie then.
 */

type Name = 'plat_access' | 'plat_refresh'
type Begun = Result<200, z.input<typeof BrowserSession>>

/** The access token that a browser has sent; '' where it has none. */
export const accessCookie = (headers: RequestHeaders): string => sent(headers, 'plat_access')

/** The refresh token that a browser has sent; '' where it has none. */
export const refreshCookie = (headers: RequestHeaders): string => sent(headers, 'plat_refresh')

function sent(headers: RequestHeaders, name: Name): string {
  const secure = cookieOf(headers, `__Host-${name}`)
  if (!isPlainLoopback(headers)) return secure
  // A browser that tells neither origin nor page may be behind a proxy with TLS: what no neighbour can set goes first.
  const isCertain = (headers['origin'] ?? headers['referer']) !== undefined
  return (isCertain ? '' : secure) || cookieOf(headers, name)
}

/** Hands the tokens to the browser, each for as long as it lives; of the page's business is only when to renew them. */
export const sessionCookies = (headers: RequestHeaders, { accessToken, refreshToken, expiresIn }: TokenSet): Begun =>
  result(200, { expiresIn }, {}, [
    setting(headers, 'plat_access', accessToken, expiresIn),
    setting(headers, 'plat_refresh', refreshToken, refreshTokenSeconds),
  ])

/** Takes the tokens away from the browser. */
export const clearedCookies = (headers: RequestHeaders): Result<204, undefined> =>
  result(204, undefined, {}, removed(headers))

/** Renews the tokens; where they are worth nothing any more the refusal takes them away. Any other failure leaves them. */
export async function renewedCookies(headers: RequestHeaders, renew: () => Promise<TokenSet>): Promise<Begun> {
  try {
    return sessionCookies(headers, await renew())
  } catch (error) {
    if (!(error instanceof PlatformError) || error.code !== 'invalid_refresh_token') throw error
    throw platformError(error.code, { ...error.extra, cookies: removed(headers) }, { cause: error.cause })
  }
}

const removed = (headers: RequestHeaders): string[] =>
  (['plat_access', 'plat_refresh'] as const).map((name) => setting(headers, name, '', 0))

function setting(headers: RequestHeaders, name: Name, value: string, maxAgeSeconds: number): string {
  const attributes = `HttpOnly; SameSite=Strict; Path=/; Max-Age=${maxAgeSeconds}`
  return isPlainLoopback(headers) ? `${name}=${value}; ${attributes}` : `__Host-${name}=${value}; Secure; ${attributes}`
}
