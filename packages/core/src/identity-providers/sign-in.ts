import { Credentials, type TokenSet } from '@platform/contract/auth'
import type { BrowserSignIn } from '@platform/contract/browser-session'
import { type Attempt, beginAttempt } from '../accounts/credential.ts'
import { signInLocally, refresh } from '../accounts/session.ts'
import type { Origin } from '../caller.ts'
import type { ProviderRecord } from './record.ts'

/**
 * Signs in with the local account of a name, else with the LDAP providers. Directories never receive the password of a
 * name with a local password. Three calls for a local account; others read the providers with one more, and so does a
 * failure. Throws the errors of the session's `signIn`, and `directory_unreachable`.
 */
export async function signIn({ username, password }: Credentials, origin: Origin): Promise<TokenSet> {
  const attempt = await beginAttempt(username, origin)
  if (attempt.credential?.passwordHash !== undefined) return signInByPassword(attempt, password, origin)
  const directories = await enabledDirectories()
  if (directories.length === 0) return signInLocally(attempt, password, origin)
  // Loaded on demand, for a fast cold start.
  const { signInByDirectory } = await import('./ldap/sign-in.ts')
  return signInByDirectory(directories, attempt, password, origin)
}

const enabledDirectories = async (): Promise<ProviderRecord[]> =>
  (await import('./provider.ts')).enabledProviders('LDAP')

async function signInByPassword(attempt: Attempt, password: string, origin: Origin): Promise<TokenSet> {
  try {
    return await signInLocally(attempt, password, origin)
  } catch (error) {
    // Makes the same calls as for an unknown name, so that timing does not reveal which names exist.
    await enabledDirectories()
    throw error
  }
}

/**
 * Starts a browser session by name and password, by the code of an identity provider (`browser` is its bound secret) or
 * by a refresh token. Same calls, errors and records as the API.
 */
export async function startBrowserSession(
  { code, refreshToken, ...credentials }: BrowserSignIn,
  { browser, origin }: { browser: string; origin: Origin },
): Promise<TokenSet> {
  if (refreshToken !== undefined) return refresh({ refreshToken }, origin)
  if (code === undefined) return signIn(Credentials.parse(credentials), origin)
  // Loaded on demand, for a fast cold start.
  const { exchange } = await import('./oidc/code.ts')
  return exchange(code, browser, origin)
}
