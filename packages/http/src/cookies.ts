import { refreshTokenSeconds } from '@platform/contract/auth'
import type { BrowserSession } from '@platform/contract/browser-session'
import { deviceSeconds } from '@platform/core/accounts/device'
import type { SignedIn } from '@platform/core/accounts/session'
import { PlatformError, platformError } from '@platform/core/error'
import { attemptSeconds } from '@platform/core/identity-providers/oidc/attempt'
import type * as z from 'zod'
import type { RequestHeaders } from './request.ts'
import { type Result, result } from './result.ts'
import { isPlainLoopback } from './same-origin.ts'

/** The value of a cookie, or '' if the browser sent none with this name. */
export function cookieOf({ cookie = '' }: RequestHeaders, name: string): string {
  const pairs = cookie.split(';').map((pair) => pair.trim())
  return pairs.find((pair) => pair.startsWith(`${name}=`))?.slice(name.length + 1) ?? ''
}

// The cookies with a browser's tokens. The prefix `__Host-` prevents sibling domains from setting them. Over plain HTTP
// on loopback it is omitted, because some browsers reject such cookies there.

type CookieName = 'plat_access' | 'plat_refresh' | 'plat_device'
type SessionResult = Result<200, z.input<typeof BrowserSession>>

/** The access token in the browser's cookie, or '' if there is none. */
export const accessCookie = (headers: RequestHeaders): string => readCookie(headers, 'plat_access')

/** The refresh token in the browser's cookie, or '' if there is none. */
export const refreshCookie = (headers: RequestHeaders): string => readCookie(headers, 'plat_refresh')

/** The cookie of a browser in which a user has signed in before, or '' if there is none. */
export const deviceCookie = (headers: RequestHeaders): string => readCookie(headers, 'plat_device')

function readCookie(headers: RequestHeaders, name: CookieName): string {
  const hostCookie = cookieOf(headers, `__Host-${name}`)
  if (!isPlainLoopback(headers)) return hostCookie
  // Without `Origin` and `Referer` a TLS proxy may be involved, so the cookie that siblings cannot set takes
  // precedence.
  const hasOrigin = (headers['origin'] ?? headers['referer']) !== undefined
  return (hasOrigin ? '' : hostCookie) || cookieOf(headers, name)
}

/** Sets each token as a cookie for its lifetime, and the cookie of the device after a password sign-in. The body contains only the time until the next refresh. */
export const sessionCookies = (
  headers: RequestHeaders,
  { accessToken, refreshToken, expiresIn, notice, device }: SignedIn,
): SessionResult =>
  result(200, { expiresIn, ...(notice !== undefined && { notice }) }, {}, [
    setCookie(headers, 'plat_access', accessToken, expiresIn),
    setCookie(headers, 'plat_refresh', refreshToken, refreshTokenSeconds),
    ...(device === undefined ? [] : [setCookie(headers, 'plat_device', device, deviceSeconds)]),
  ])

export const clearedCookies = (headers: RequestHeaders): Result<204, undefined> =>
  result(204, undefined, {}, clearingCookies(headers))

/** Refreshes the tokens. An invalid refresh token deletes the cookies; other errors keep them. */
export async function renewedCookies(headers: RequestHeaders, renew: () => Promise<SignedIn>): Promise<SessionResult> {
  try {
    return sessionCookies(headers, await renew())
  } catch (error) {
    if (!(error instanceof PlatformError) || error.code !== 'invalid_refresh_token') throw error
    throw platformError(error.code, { ...error.extra, cookies: clearingCookies(headers) }, { cause: error.cause })
  }
}

const clearingCookies = (headers: RequestHeaders): string[] =>
  (['plat_access', 'plat_refresh'] as const).map((name) => setCookie(headers, name, '', 0))

function setCookie(headers: RequestHeaders, name: CookieName, value: string, maxAgeSeconds: number): string {
  const attributes = `HttpOnly; SameSite=Strict; Path=/; Max-Age=${maxAgeSeconds}`
  return isPlainLoopback(headers) ? `${name}=${value}; ${attributes}` : `__Host-${name}=${value}; Secure; ${attributes}`
}

// The secret that binds a sign-in to the browser that started it. The prefix `__Host-` prevents sibling domains from
// setting it. `SameSite=Lax` is required, because the provider redirects the browser from another site.

const signInCookieName = '__Host-plat_sign_in'
const signInAttributes = 'Path=/; Secure; HttpOnly; SameSite=Lax'

export const signInCookie = (browser: string | undefined): string[] =>
  browser === undefined ? [] : [`${signInCookieName}=${browser}; ${signInAttributes}; Max-Age=${attemptSeconds}`]

/** The sign-in secret in the browser's cookie, or '' if there is none. */
export const browserOf = (headers: RequestHeaders): string => cookieOf(headers, signInCookieName)
