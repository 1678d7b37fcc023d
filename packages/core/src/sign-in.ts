import { type Credentials, type TokenSet } from '@platform/contract/auth'
import { type Origin } from './caller.ts'
import { begin } from './credential.ts'
import { signInHere } from './session.ts'

/**
 * Signs in with the local account of a name; where there is none, with the directories (D41). A name that has a password
 * here is tried here only: no directory ever gets to know it, and none that is down keeps its owner out. Three calls for a
 * local account; a name without one asks for the providers, one more. Throws as `signIn` of sessions does, and
 * `directory_unreachable`.
 */
export async function signIn({ username, password }: Credentials, origin: Origin): Promise<TokenSet> {
  const attempt = await begin(username, origin)
  if (attempt.credential?.passwordHash === undefined) {
    // Whoever signs in with a local account does not wait for the client of directories to be loaded.
    const { enabledProviders } = await import('./identity-provider.ts')
    const directories = await enabledProviders('LDAP')
    if (directories.length > 0) {
      const { signInByDirectory } = await import('./ldap-sign-in.ts')
      return signInByDirectory(directories, attempt, password, origin)
    }
  }
  return signInHere(attempt, password, origin)
}
