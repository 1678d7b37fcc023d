import { type TokenSet } from '@platform/contract/auth'
import { type Origin } from '../../caller.ts'
import { orThrow } from '../../db/table.ts'
import { openExternalSession } from '../external-user.ts'
import { platformError } from '../../error.ts'
import { findProvider } from '../provider.ts'
import { type ProviderRecord } from '../record.ts'
import { readCode } from './attempt.ts'

/** The last step of a sign-in with OpenID Connect: apart from the others, as it needs nothing that speaks to providers. */

/** The provider, where one can sign in with it by OpenID Connect just now. One call. */
export async function findOidcProvider(providerId: string): Promise<ProviderRecord | undefined> {
  const provider = await findProvider(providerId)
  return provider?.isEnabled && provider.type !== 'LDAP' ? provider : undefined
}

/**
 * Trades a code of `finish` for tokens, once, within a minute and for the browser that began. Throws
 * `sign_in_code_invalid`. Four calls; the code is used up by the transaction that opens the session.
 */
export async function exchange(code: string, browser: string, origin: Origin): Promise<TokenSet> {
  const proof = await readCode(code, browser)
  if (proof === undefined || (await findOidcProvider(proof.providerId)) === undefined)
    throw platformError('sign_in_code_invalid')
  return openExternalSession(proof, origin, [orThrow(proof.use, 'sign_in_code_invalid')])
}
