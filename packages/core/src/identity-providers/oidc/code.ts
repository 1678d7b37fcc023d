import { type TokenSet } from '@platform/contract/auth'
import { type Origin } from '../../caller.ts'
import { orThrow } from '../../db/table.ts'
import { openExternalSession } from '../external-user.ts'
import { platformError } from '../../error.ts'
import { findProvider } from '../provider.ts'
import { type ProviderRecord } from '../record.ts'
import { readCode } from './attempt.ts'

/** The last step of an OpenID Connect sign-in, in a separate file because it does not need the provider client. */

/** An enabled OpenID Connect provider, or undefined. One call. */
export async function findOidcProvider(providerId: string): Promise<ProviderRecord | undefined> {
  const provider = await findProvider(providerId)
  return provider?.isEnabled && provider.type !== 'LDAP' ? provider : undefined
}

/**
 * Exchanges a code of `completeSignIn` for tokens: once, within a minute and in the same browser. Throws
 * `sign_in_code_invalid`. Four calls; the transaction that opens the session consumes the code.
 */
export async function exchange(code: string, browser: string, origin: Origin): Promise<TokenSet> {
  const signIn = await readCode(code, browser)
  if (signIn === undefined || (await findOidcProvider(signIn.providerId)) === undefined)
    throw platformError('sign_in_code_invalid')
  return openExternalSession(signIn, origin, [orThrow(signIn.consumeWrite, 'sign_in_code_invalid')])
}
