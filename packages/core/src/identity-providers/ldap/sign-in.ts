import { type TokenSet } from '@platform/contract/auth'
import { type Origin } from '../../caller.ts'
import { bulkhead } from '../../lib/bulkhead.ts'
import { acceptAttempt, type Attempt, countFailure, rejectAttempt } from '../../accounts/credential.ts'
import { signInExternal } from '../external-user.ts'
import { platformError } from '../../error.ts'
import { type ProviderRecord } from '../record.ts'
import { log } from '../../log.ts'
import { authenticate } from './ldap.ts'

/** Sign-in by a name that has no password here, with the directories that are providers (D41). */

/** For all directories together: whoever waits longer has given up. */
const patienceMs = 6000
/** Each has its share of it, and no less than this, so that one that hangs keeps nobody from the next. */
const shareMs = 1500

/** A directory that hangs keeps so many sign-ins waiting in this process, and no more. */
const atOnce = 32
const besideOthers = bulkhead(() => platformError('rate_limited', { retryAfterSeconds: 2 }))

/**
 * Signs in with the first of some directories that knows name and password. Throws `invalid_credentials`, `rate_limited`,
 * or `directory_unreachable` where one that could not be asked might have known. All of them count as failures. Three calls
 * or four, see `signInExternal`; three where it is refused.
 */
export async function signInByDirectory(
  directories: readonly ProviderRecord[],
  attempt: Attempt,
  password: string,
  origin: Origin,
): Promise<TokenSet> {
  const credentials = { username: attempt.username, password }
  const { found, isEachAsked } = await besideOthers('', atOnce, () => askAll(directories, credentials))
  if (found !== undefined) {
    await acceptAttempt(attempt)
    return signInExternal(found.provider, found.identity, origin)
  }
  if (isEachAsked) return rejectAttempt(attempt)
  await countFailure(attempt)
  throw platformError('directory_unreachable', { retryAfterSeconds: 5 })
}

async function askAll(directories: readonly ProviderRecord[], credentials: { username: string; password: string }) {
  const end = AbortSignal.timeout(patienceMs)
  const share = Math.max(shareMs, patienceMs / directories.length)
  let isEachAsked = true
  for (const provider of directories) {
    try {
      const signal = AbortSignal.any([end, AbortSignal.timeout(share)])
      const identity = await before(signal, () => authenticate(provider, credentials, signal))
      if (identity !== undefined) return { found: { provider, identity }, isEachAsked }
    } catch (error) {
      isEachAsked = false
      log('warn', 'A directory could not be asked', { providerId: provider.id, error: String(error) })
    }
  }
  return { found: undefined, isEachAsked }
}

/** The work, or a failure when the signal comes first: not all that it waits for heeds the signal. Too late, it never begins. */
const before = <Result>(signal: AbortSignal, work: () => Promise<Result>): Promise<Result> =>
  new Promise((resolve, reject) => {
    signal.throwIfAborted()
    signal.addEventListener('abort', () => reject(new Error('The directory took too long.')), { once: true })
    work().then(resolve, reject)
  })
