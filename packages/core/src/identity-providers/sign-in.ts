import { Credentials } from '@platform/contract/auth'
import type { BrowserSignIn } from '@platform/contract/browser-session'
import { type Attempt, beginAttempt } from '../accounts/credential.ts'
import * as Session from '../accounts/session.ts'
import type { SignedIn } from '../accounts/session.ts'
import type { Origin } from '../caller.ts'
import { PlatformError } from '../error.ts'
import type { ProviderRecord } from './record.ts'

/** If a name has a local password, directories never receive the password that was entered. */
export async function signIn({ username, password }: Credentials, origin: Origin): Promise<SignedIn> {
  const attempt = await beginAttempt(username, origin)
  if (attempt.credential?.passwordHash !== undefined) return signInByPassword(attempt, password, origin)
  const directories = await enabledDirectories()
  if (directories.length === 0) return Session.signInLocally(attempt, password, origin)
  // Loaded on demand, for a fast cold start.
  const { signInByDirectory } = await import('./ldap/sign-in.ts')
  return signInByDirectory(directories, attempt, password, origin)
}

const enabledDirectories = async (): Promise<ProviderRecord[]> =>
  (await import('./provider.ts')).enabledProviders('LDAP')

async function signInByPassword(attempt: Attempt, password: string, origin: Origin): Promise<SignedIn> {
  try {
    return await Session.signInLocally(attempt, password, origin)
  } catch (error) {
    // Makes the same calls as for an unknown name, so that timing does not reveal which names exist.
    if (error instanceof PlatformError && error.code === 'invalid_credentials') {
      const directories = await enabledDirectories()
      if (directories.length > 0)
        await (await import('./ldap/sign-in.ts')).lookUp(directories, attempt.username, password, origin)
    }
    throw error
  }
}

/** If a check is due, also asks the user's identity provider whether the user still exists. */
export const refresh = (
  request: { refreshToken: string },
  origin: Origin,
  options: { idempotencyKey?: string | undefined; isNewDevice?: boolean } = {},
): Promise<SignedIn> =>
  Session.refresh(request, origin, {
    ...options,
    // Loaded on demand, for a fast cold start.
    confirm: async (...question) => (await import('./confirm.ts')).confirm(...question),
  })

interface BrowserSessionOptions {
  browsers: readonly string[]
  origin: Origin
  idempotencyKey?: string | undefined
}

/**
 * `browsers` are the secrets that bind sign-in codes to the browser. Errors and audit entries are the same as for the
 * API.
 */
export async function startBrowserSession(
  { code, refreshToken, ...credentials }: BrowserSignIn,
  { browsers, origin, idempotencyKey }: BrowserSessionOptions,
): Promise<SignedIn> {
  if (refreshToken !== undefined) return refresh({ refreshToken }, origin, { idempotencyKey, isNewDevice: true })
  if (code === undefined) return signIn(Credentials.parse(credentials), origin)
  // Loaded on demand, for a fast cold start.
  const { exchange } = await import('./oidc/code.ts')
  return exchange(code, browsers, origin)
}
