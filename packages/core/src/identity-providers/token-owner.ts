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
 * Suspends the owner of recently used API tokens if the identity provider no longer has the user. `tokens` belong to
 * one user. Repeats have no effect. The first use in a later hour makes a token due again.
 */
export async function confirmOwner(tokens: readonly Item[], unreachable: Set<string>): Promise<void> {
  const [first] = tokens
  if (first === undefined) return
  const { organisationId, userId } = parseApiToken(first)
  const user = await find(organisationId, userId)
  const reason =
    user && !isLocal(user) && user.suspendedAtMs === undefined && (await reasonToSuspend(user, unreachable))
  if (reason) await suspend(organisationId, userId, reason)
  // A token that was used again since the read stays due.
  const done = tokens.map(({ pk, sk, duesk }) =>
    patch({ pk: String(pk), sk: String(sk) }, { remove: ['duepk', 'duesk'] }, { duesk: { is: duesk } }),
  )
  for (const write of done) await transact([write])
}

async function reasonToSuspend(user: User, unreachable: Set<string>): Promise<string | undefined> {
  const provider = await get(keys.identityProvider(user.authProvider))
  // The tokens are rejected while the provider is disabled, and work again once it is enabled.
  if (provider === undefined || !isEnabledProvider(provider)) return undefined
  const isOverdue = now() >= lastConfirmationMs(user) + maxUnconfirmedTokenMs
  const overdue = isOverdue ? 'The identity provider has not confirmed the user for 30 days' : undefined
  // An OpenID provider cannot be asked, because an API token has no refresh token.
  if (!hasPermanentId(user.subject) || unreachable.has(user.authProvider)) return overdue
  const confirmation = await confirm(user, provider, undefined, undefined)
  if (confirmation.status === 'withdrawn') return confirmation.reason
  if (confirmation.status === 'unknown') {
    unreachable.add(user.authProvider)
    return overdue
  }
  const confirmed = newConfirmation(user)
  if (confirmed) await transact([patch(keys.user(user.organisationId, user.id), { set: confirmed })])
  return undefined
}
