import { type TokenSet } from '@platform/contract/auth'
import { type Origin } from '../../caller.ts'
import { bulkhead } from '../../lib/bulkhead.ts'
import { acceptAttempt, type Attempt, countFailure, rejectAttempt } from '../../accounts/credential.ts'
import { signInExternal } from '../external-user.ts'
import { platformError } from '../../error.ts'
import { type ProviderRecord } from '../record.ts'
import { log } from '../../log.ts'
import { authenticate } from './ldap.ts'

/** Sign-in with LDAP providers, for names without a local password. */

/** The limit for all directories together. */
const patienceMs = 6000
/** The minimum share of each, so that a hanging directory does not use up the time of the next. */
const shareMs = 1500

/** Limits the sign-ins of this process that wait for a hanging directory. */
const atOnce = 32
const besideOthers = bulkhead(() => platformError('rate_limited', { retryAfterSeconds: 2 }))

/**
 * Signs in with the first directory that accepts the name and password. Throws `invalid_credentials`, `rate_limited`,
 * or `directory_unreachable` if an unreachable one might have accepted. All count as failures. Three calls or four, see
 * `signInExternal`; three on failure.
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
      log('warn', 'Directory unreachable', { providerId: provider.id, error: String(error) })
    }
  }
  return { found: undefined, isEachAsked }
}

/** Rejects when the signal fires first, because not all calls observe it. Does not start after the signal. */
const before = <Result>(signal: AbortSignal, work: () => Promise<Result>): Promise<Result> =>
  new Promise((resolve, reject) => {
    signal.throwIfAborted()
    signal.addEventListener('abort', () => reject(new Error('The directory did not respond in time.')), { once: true })
    work().then(resolve, reject)
  })
