import { type TokenSet } from '@platform/contract/auth'
import { type Origin } from '../../caller.ts'
import { bulkhead } from '../../lib/async.ts'
import { acceptAttempt, type Attempt, countFailure, rejectAttempt } from '../../accounts/credential.ts'
import { signInExternal } from '../external-user.ts'
import { platformError } from '../../error.ts'
import { type ProviderRecord } from '../record.ts'
import { log } from '../../log.ts'
import { authenticate } from './ldap.ts'

const timeoutMs = 6000
/** The minimum time for each directory, so that one that hangs does not use the time of the next. */
const minShareMs = 1500

/** Limited, because a directory that hangs keeps each sign-in for seconds. */
const maxConcurrent = 32
const limitConcurrency = bulkhead(() => platformError('rate_limited', { retryAfterSeconds: 2 }))

/**
 * Throws `directory_unreachable` if no directory accepts the password but an unreachable one might have. Each failure
 * counts towards the sign-in limits.
 */
export async function signInByDirectory(
  directories: readonly ProviderRecord[],
  attempt: Attempt,
  password: string,
  origin: Origin,
): Promise<TokenSet> {
  const credentials = { username: attempt.username, password }
  const { match, isConclusive } = await limitConcurrency('', maxConcurrent, () =>
    authenticateWithEach(directories, credentials),
  )
  if (match !== undefined) {
    await acceptAttempt(attempt)
    return signInExternal(match.provider, match.identity, origin)
  }
  if (isConclusive) return rejectAttempt(attempt)
  await countFailure(attempt)
  throw platformError('directory_unreachable', { retryAfterSeconds: 5 })
}

async function authenticateWithEach(
  directories: readonly ProviderRecord[],
  credentials: { username: string; password: string },
) {
  const deadline = AbortSignal.timeout(timeoutMs)
  const share = Math.max(minShareMs, timeoutMs / directories.length)
  let isConclusive = true
  for (const provider of directories) {
    try {
      const signal = AbortSignal.any([deadline, AbortSignal.timeout(share)])
      const identity = await untilAborted(signal, () => authenticate(provider, credentials, signal))
      if (identity !== undefined) return { match: { provider, identity }, isConclusive }
    } catch (error) {
      isConclusive = false
      log('warn', 'Directory unreachable', { providerId: provider.id, error: String(error) })
    }
  }
  return { match: undefined, isConclusive }
}

/** Rejects when the signal fires, because not all calls observe it. */
const untilAborted = <Result>(signal: AbortSignal, work: () => Promise<Result>): Promise<Result> =>
  new Promise((resolve, reject) => {
    signal.throwIfAborted()
    signal.addEventListener('abort', () => reject(new Error('The directory did not respond in time.')), { once: true })
    work().then(resolve, reject)
  })
