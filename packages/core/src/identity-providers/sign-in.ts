import { type Credentials, type TokenSet } from '@platform/contract/auth'
import { type Origin } from '../caller.ts'
import { type Attempt, beginAttempt } from '../accounts/credential.ts'
import { type ProviderRecord } from './record.ts'
import { signInLocally } from '../accounts/session.ts'

/**
 * Signs in with the local account of a name; where there is none, with the directories (D41). A name that has a password
 * here is tried here only: no directory ever gets to know it, and none that is down keeps its owner out. Three calls for a
 * local account; a name without one asks for the providers, one more, and so does a failure. Throws as `signIn` of sessions
 * does, and `directory_unreachable`.
 */
export async function signIn({ username, password }: Credentials, origin: Origin): Promise<TokenSet> {
  const attempt = await beginAttempt(username, origin)
  if (attempt.credential?.passwordHash !== undefined) return signInByPassword(attempt, password, origin)
  const directories = await enabledDirectories()
  if (directories.length === 0) return signInLocally(attempt, password, origin)
  // Whoever signs in with a local account does not wait for the client of directories to be loaded.
  const { signInByDirectory } = await import('./ldap/sign-in.ts')
  return signInByDirectory(directories, attempt, password, origin)
}

const enabledDirectories = async (): Promise<ProviderRecord[]> =>
  (await import('./provider.ts')).enabledProviders('LDAP')

async function signInByPassword(attempt: Attempt, password: string, origin: Origin): Promise<TokenSet> {
  try {
    return await signInLocally(attempt, password, origin)
  } catch (error) {
    // As where nobody has the name: else the time of a failure would tell whether somebody has.
    await enabledDirectories()
    throw error
  }
}
