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

/** Returns the value of a cookie, or '' if the browser sent no cookie with this name. */
export function cookieOf({ cookie = '' }: RequestHeaders, name: string): string {
  const pairs = cookie.split(';').map((pair) => pair.trim())
  return pairs.find((pair) => pair.startsWith(`${name}=`))?.slice(name.length + 1) ?? ''
}

// The following functions handle the cookies with a browser's tokens. The prefix `__Host-` prevents sibling domains
// from setting them. Over plain HTTP on loopback, cookies have no prefix and are not `Secure`, because some browsers
// reject `Secure` cookies there.

type CookieName = 'plat_access' | 'plat_refresh' | 'plat_device'
type SessionResult = Result<200, z.input<typeof BrowserSession>>

export const accessCookie = (headers: RequestHeaders): string => readCookie(headers, 'plat_access')

export const refreshCookie = (headers: RequestHeaders): string => readCookie(headers, 'plat_refresh')

/** Returns the cookie of a browser in which a user has signed in before, or '' if there is no such cookie. */
export const deviceCookie = (headers: RequestHeaders): string => readCookie(headers, 'plat_device')

function readCookie(headers: RequestHeaders, name: CookieName): string {
  const hostCookie = cookieOf(headers, `__Host-${name}`)
  if (!isPlainLoopback(headers)) return hostCookie
  // A request without `Origin` and `Referer` may come through a TLS proxy, so the `__Host-` cookie takes precedence.
  const hasOrigin = (headers['origin'] ?? headers['referer']) !== undefined
  return (hasOrigin ? '' : hostCookie) || cookieOf(headers, name)
}

/**
 * Creates a response that sets a cookie for each token and, if there is one, for the device. The body contains no
 * tokens.
 */
export const setSessionCookies = (
  headers: RequestHeaders,
  { accessToken, refreshToken, expiresIn, notice, device }: SignedIn,
): SessionResult =>
  result(200, { expiresIn, ...(notice !== undefined && { notice }) }, {}, [
    setCookie(headers, 'plat_access', accessToken, expiresIn),
    setCookie(headers, 'plat_refresh', refreshToken, refreshTokenSeconds),
    ...(device === undefined ? [] : [setCookie(headers, 'plat_device', device, deviceSeconds)]),
  ])

export const clearCookies = (headers: RequestHeaders): Result<204, undefined> =>
  result(204, undefined, {}, clearingCookies(headers))

/** Renews the tokens and their cookies. An invalid refresh token deletes the cookies; other errors keep them. */
export async function renewCookies(headers: RequestHeaders, renew: () => Promise<SignedIn>): Promise<SessionResult> {
  try {
    return setSessionCookies(headers, await renew())
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
const signInCookiePattern = /^__Host-plat_sign_in_\d{13}[\w-]{8}$/
const signInAttributes = 'Path=/; Secure; HttpOnly; SameSite=Lax'
const maxSignInCookies = 8
/** Maximum number of cookies that one response deletes, because gateways limit the size of the headers. */
const maxRemovedCookies = 20

/**
 * Returns the cookie of a new attempt, and cookies that delete the oldest attempts beyond eight, at most 20 at once.
 * Returns no cookies if there is no new attempt.
 */
export function signInCookies(headers: RequestHeaders, browserSecret: string | undefined): string[] {
  if (browserSecret === undefined) return []
  const outdatedPairs = signInPairs(headers)
    .slice(0, 1 - maxSignInCookies)
    .slice(0, maxRemovedCookies)
  return [
    `__Host-plat_sign_in_${now()}${newNonce()}=${browserSecret}; ${signInAttributes}; Max-Age=${attemptSeconds}`,
    ...outdatedPairs.map(([name]) => `${name}=; ${signInAttributes}; Max-Age=0`),
  ]
}

/** Returns the secrets of the browser's attempts, oldest first. */
export const browserSecretsOf = (headers: RequestHeaders): string[] => signInPairs(headers).map(([, secret]) => secret)

/** Returns the sign-in cookies, oldest first. */
const signInPairs = ({ cookie = '' }: RequestHeaders): [name: string, secret: string][] =>
  cookie
    .split(';')
    .map((pair): [string, string] => {
      const [name = '', value = ''] = pair.trim().split('=')
      return [name, value]
    })
    .filter(([name]) => signInCookiePattern.test(name))
    .toSorted(([a], [b]) => (a < b ? -1 : 1))
