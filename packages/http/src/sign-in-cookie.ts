import { attemptSeconds } from '@platform/core/identity-providers/oidc/attempt'
import { cookieOf, type RequestHeaders } from './cookie.ts'

/**
 * The secret that binds a sign-in to the browser that began it. Browsers take a name with `__Host-` only from the very host,
 * over TLS and for all of its paths: no neighbour on a sibling domain can put a secret of its own there. Setup takes no
 * portal without TLS. `Lax`: the provider sends the browser back from another site.
 */

const name = '__Host-plat_sign_in'
const attributes = 'Path=/; Secure; HttpOnly; SameSite=Lax'

/** The cookie that hands the secret to the browser; none where there is none to hand out. */
export const signInCookie = (browser: string | undefined): string[] =>
  browser === undefined ? [] : [`${name}=${browser}; ${attributes}; Max-Age=${attemptSeconds}`]

/** The secret that a browser has sent; '' where it has none. */
export const browserOf = (headers: RequestHeaders): string => cookieOf(headers, name)
