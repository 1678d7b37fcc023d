import type { Origin } from '../../caller.ts'
import { elapsedMs } from '../../clock.ts'
import { bulkhead, untilAborted } from '../../lib/async.ts'
import { type Attempt, countAndCompare, failAccepted, rejectAttempt } from '../../accounts/credential.ts'
import type { SignedIn } from '../../accounts/session.ts'
import { signInExternal } from '../external-user.ts'
import { PlatformError, platformError } from '../../error.ts'
import { reportFailure } from '../provider-failure.ts'
import type { ExternalIdentity, ProviderRecord } from '../record.ts'
import { authenticate, type Lookup } from './ldap.ts'
import { failureOf } from './test.ts'

/** The total time limit. Each directory may use an equal share of the time that is left, but at least `minShareMs`. */
const timeoutMs = 6000
/** Enough for a slow directory, even if there are many directories. */
const minShareMs = 1500

/** Limits concurrent lookups, because a directory that hangs delays each of them for seconds. */
const maxConcurrentLookups = 32
const limitConcurrency = bulkhead(() => platformError('rate_limited', { retryAfterSeconds: 2 }))

/**
 * An unreachable directory gives the same response as a wrong password, because the difference would reveal which names
 * are local. The administrators are notified instead.
 */
export async function signInByDirectory(
  directories: readonly ProviderRecord[],
  attempt: Attempt,
  password: string,
  origin: Origin,
): Promise<SignedIn> {
  const { username } = attempt
  // Compares a password for an unknown name too. Otherwise the response time would reveal which names are local.
  await countAndCompare(attempt, password)
  const match = await findMatch(directories, { username, password }, origin)
  if (match === undefined) return rejectAttempt(attempt)
  return signInExternal(match.provider, match.identity, origin, attempt).catch((error: unknown) =>
    failAccepted(attempt, error),
  )
}

/** Searches for the name without a sign-in. The password is not sent. */
export async function lookUp(
  directories: readonly ProviderRecord[],
  username: string,
  password: string,
  origin: Origin,
): Promise<void> {
  await findMatch(directories, { username, password, isLookupOnly: true }, origin)
}

interface Match {
  provider: ProviderRecord
  identity: ExternalIdentity
}

const findMatch = (
  directories: readonly ProviderRecord[],
  lookup: Lookup,
  origin: Origin,
): Promise<Match | undefined> =>
  limitConcurrency('', maxConcurrentLookups, async () => {
    const untilMs = elapsedMs() + timeoutMs
    for (const [index, provider] of directories.entries()) {
      const leftMs = untilMs - elapsedMs()
      if (leftMs <= 0) break
      const shareMs = Math.max(minShareMs, leftMs / (directories.length - index))
      const signal = AbortSignal.timeout(Math.ceil(Math.min(leftMs, shareMs)))
      try {
        const identity = await untilAborted(signal, () => authenticate(provider, lookup, signal))
        if (identity !== undefined) return { provider, identity }
      } catch (error) {
        // The platform's own store or secrets are unavailable.
        if (error instanceof PlatformError) throw error
        const { problem, detail } = failureOf(error, signal)
        await reportFailure(provider, problem, detail, origin, error)
      }
    }
    return undefined
  })
