import { parseApiToken } from '../accounts/api-token-caller.ts'
import { lastConfirmationMs, maxUnconfirmedTokenMs, newConfirmation, suspend } from '../accounts/provider-check.ts'
import { find, isEnabledProvider, isLocal, type User } from '../accounts/user.ts'
import { now } from '../clock.ts'
import * as keys from '../db/keys.ts'
import { get, type Item, patch } from '../db/table.ts'
import { transact } from '../db/transact.ts'
import { confirm } from './confirm.ts'
import { hasPermanentId } from './record.ts'

/**
 * Suspends the user to whom all `tokens` belong if the identity provider has removed or disabled the user, or has not
 * confirmed the user for 30 days. The first use of a token in a later hour makes the token due again.
 */
export async function confirmOwner(tokens: readonly Item[], unreachableProviders: Set<string>): Promise<void> {
  const [firstToken] = tokens
  if (firstToken === undefined) return
  const { organisationId, userId } = parseApiToken(firstToken)
  const user = await find(organisationId, userId)
  const reason =
    user && !isLocal(user) && user.suspendedAtMs === undefined && (await reasonToSuspend(user, unreachableProviders))
  if (reason) await suspend(organisationId, userId, reason)
  // A token that was used again since the read stays due.
  const doneWrites = tokens.map(({ pk, sk, duesk }) =>
    patch({ pk: String(pk), sk: String(sk) }, { remove: ['duepk', 'duesk'] }, { duesk: { is: duesk } }),
  )
  for (const write of doneWrites) await transact([write])
}

async function reasonToSuspend(user: User, unreachableProviders: Set<string>): Promise<string | undefined> {
  const provider = await get(keys.identityProvider(user.authProvider))
  // The tokens are rejected while the provider is disabled, and work again once it is enabled.
  if (provider === undefined || !isEnabledProvider(provider)) return undefined
  const isOverdue = now() >= lastConfirmationMs(user) + maxUnconfirmedTokenMs
  const overdueReason = isOverdue ? 'The identity provider has not confirmed the user for 30 days' : undefined
  // An OpenID provider cannot be asked, because no refresh token of the provider is stored with an API token.
  if (!hasPermanentId(user.subject) || unreachableProviders.has(user.authProvider)) return overdueReason
  const confirmation = await confirm(user, provider, undefined, undefined)
  if (confirmation.status === 'withdrawn') return confirmation.reason
  if (confirmation.status === 'unknown') {
    unreachableProviders.add(user.authProvider)
    return overdueReason
  }
  const confirmationTime = newConfirmation(user)
  if (confirmationTime) await transact([patch(keys.user(user.organisationId, user.id), { set: confirmationTime })])
  return undefined
}
