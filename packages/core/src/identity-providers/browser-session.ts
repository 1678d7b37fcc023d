import { type BrowserSignIn } from '@platform/contract/browser-session'
import { Credentials, type TokenSet } from '@platform/contract/auth'
import { type Origin } from '../caller.ts'
import { refresh } from '../accounts/session.ts'
import { signIn } from './sign-in.ts'

/**
 * Begins the session of a browser, by whichever proof it has: with the same calls, refusals and records as sign-in by name and
 * password, by the code of an identity provider (`browser` is the secret that is bound to it), and refresh, which takes a session over.
 */
export async function startBrowserSession(
  { code, refreshToken, ...credentials }: BrowserSignIn,
  { browser, origin }: { browser: string; origin: Origin },
): Promise<TokenSet> {
  if (refreshToken !== undefined) return refresh({ refreshToken }, origin)
  if (code === undefined) return signIn(Credentials.parse(credentials), origin)
  // Whoever signs in by name and password does not wait for it to be loaded.
  const { exchange } = await import('./oidc/code.ts')
  return exchange(code, browser, origin)
}
