import type { TokenSet } from '@platform/contract/auth'
import type { Origin } from '../../caller.ts'
import { orThrow } from '../../db/table.ts'
import { openExternalSession } from '../external-user.ts'
import { platformError } from '../../error.ts'
import { findProvider } from '../provider.ts'
import type { ProviderRecord } from '../record.ts'
import { readCode } from './attempt.ts'

/** A separate file, because this last step of a sign-in does not need the provider client. */

export async function findOidcProvider(providerId: string): Promise<ProviderRecord | undefined> {
  const provider = await findProvider(providerId)
  return provider?.isEnabled && provider.type !== 'LDAP' ? provider : undefined
}

/** Accepts a code once, within a minute, and only from the browser that signed in. */
export async function exchange(code: string, browsers: readonly string[], origin: Origin): Promise<TokenSet> {
  const signIn = await readCode(code, browsers)
  if (signIn === undefined || (await findOidcProvider(signIn.providerId)) === undefined)
    throw platformError('sign_in_code_invalid')
  return openExternalSession(signIn, origin, [orThrow(signIn.consumeWrite, 'sign_in_code_invalid')], signIn.grant)
}
