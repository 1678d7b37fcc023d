import { refreshTokenSeconds } from '@platform/contract/auth'
import type { BrowserSession } from '@platform/contract/browser-session'
import { deviceSeconds } from '@platform/core/accounts/device'
import type { SignedIn } from '@platform/core/accounts/session'
import { now } from '@platform/core/clock'
import { PlatformError, platformError } from '@platform/core/error'
import { newNonce } from '@platform/core/id'
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
  // A request without `Origin` and `Referer` may come through a TLS proxy, so the cookie that sibling domains cannot
  // set takes precedence.
  const hasOrigin = (headers['origin'] ?? headers['referer']) !== undefined
  return (hasOrigin ? '' : hostCookie) || cookieOf(headers, name)
}

/**
 * Sets each token as a cookie for its lifetime and, if there is one, the cookie of the device. The body contains no
 * tokens.
 */
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

// Each attempt to sign in with an identity provider has a cookie with the secret that binds it to the browser, so that
// several tabs can sign in at once. The prefix `__Host-` prevents sibling domains from setting it. `SameSite=Lax` is
// required, because the provider redirects the browser from another site.

/** The name ends with the time and a random part. */
const signInCookieName = /^__Host-plat_sign_in_\d{13}[\w-]{8}$/
const signInAttributes = 'Path=/; Secure; HttpOnly; SameSite=Lax'
const maxSignInCookies = 8
/** The gateway limits the size of headers. */
const maxRemovedCookies = 20

/**
 * Sets the cookie of a new attempt and removes the oldest cookies beyond eight. Returns no cookies if there is no new
 * attempt.
 */
export function signInCookies(headers: RequestHeaders, browser: string | undefined): string[] {
  if (browser === undefined) return []
  const outdated = signInPairs(headers)
    .slice(0, 1 - maxSignInCookies)
    .slice(0, maxRemovedCookies)
  return [
    `__Host-plat_sign_in_${now()}${newNonce()}=${browser}; ${signInAttributes}; Max-Age=${attemptSeconds}`,
    ...outdated.map(([name]) => `${name}=; ${signInAttributes}; Max-Age=0`),
  ]
}

/** The secrets of the browser's attempts. */
export const browsersOf = (headers: RequestHeaders): string[] => signInPairs(headers).map(([, browser]) => browser)

/** The sign-in cookies, oldest first. */
const signInPairs = ({ cookie = '' }: RequestHeaders): [name: string, browser: string][] =>
  cookie
    .split(';')
    .map((pair): [string, string] => {
      const [name = '', value = ''] = pair.trim().split('=')
      return [name, value]
    })
    .filter(([name]) => signInCookieName.test(name))
    .toSorted(([a], [b]) => (a < b ? -1 : 1))
