import type { Confirm } from '../accounts/provider-check.ts'
import { now } from '../clock.ts'
import { PlatformError } from '../error.ts'
import { untilAborted } from '../lib/async.ts'
import { log } from '../log.ts'
import { reportFailure } from './provider-failure.ts'
import { parseProvider } from './record.ts'

const timeoutMs = 5000

/** Checks that the provider still has the user: searches the directory, or renews the refresh token. */
export const confirm: Confirm = async (user, item, grant, origin) => {
  const provider = parseProvider(item)
  const isDirectory = provider.type === 'LDAP'
  if (!isDirectory && (grant === undefined || (grant.expiresAtMs ?? Infinity) <= now())) return { status: 'unknown' }
  const signal = AbortSignal.timeout(timeoutMs)
  try {
    return await untilAborted(signal, async () => {
      if (isDirectory) return (await import('./ldap/confirm.ts')).confirmEntry(provider, user, signal)
      return grant ? (await import('./oidc/renew.ts')).renewGrant(provider, grant, user) : { status: 'unknown' }
    })
  } catch (error) {
    // The platform's own store or secrets are unavailable.
    if (error instanceof PlatformError) log('warn', 'A user was not checked', { error: String(error) })
    else {
      const { failureOf } = await (isDirectory ? import('./ldap/test.ts') : import('./oidc/errors.ts'))
      const { problem, detail } = failureOf(error, signal)
      await reportFailure(provider, problem, `A signed-in user could not be checked. ${detail}`, origin, error)
    }
    return { status: 'unknown' }
  }
}
