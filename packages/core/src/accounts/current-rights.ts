import { type Permission, permissionsOf } from '@platform/contract/permission'
import { type Caller } from '../caller.ts'
import * as keys from '../db/keys.ts'
import { getConsistent, type Item } from '../db/table.ts'
import { platformError } from '../error.ts'
import { isOpen, parseSession } from './session.ts'
import { parseUser, type User, isProviderEnabled } from './user.ts'

/**
 * Access tokens stay valid for minutes after a role, session or user was removed. Use cases that grant longer access
 * re-check the caller's current rights.
 */

/** The current user record and permissions of a caller. */
export interface CurrentRights {
  user: User
  /** Permissions that both the user's roles and the token include. */
  rights: ReadonlySet<Permission>
}

/**
 * The caller's current rights, and the items of `itemKeys`. Throws `unauthenticated` if the user, its session or its
 * provider is no longer valid, and `forbidden` without these permissions. One call for up to 98 keys; two for a user of
 * an identity provider.
 */
export async function reauthorize(
  caller: Caller,
  permissions: readonly Permission[],
  itemKeys: readonly keys.Key[] = [],
): Promise<[CurrentRights, ...(Item | undefined)[]]> {
  const { organisationId, userId, sessionId } = caller
  const callerKeys = [keys.user(organisationId, userId), keys.session(sessionId)]
  const [user, session, ...items] = await getConsistent([...callerKeys, ...itemKeys])
  const current = await currentRights(caller, user, session)
  requireCurrentRights(current, permissions)
  return [current, ...items]
}

async function currentRights(
  caller: Caller,
  userItem: Item | undefined,
  sessionItem: Item | undefined,
): Promise<CurrentRights> {
  const user = userItem && parseUser(userItem)
  const session = sessionItem && parseSession(sessionItem)
  if (user === undefined) throw platformError('unauthenticated')
  if (caller.tokenId === undefined && (session === undefined || !isOpen(session, user)))
    throw platformError('unauthenticated')
  if (!(await isProviderEnabled(user))) throw platformError('unauthenticated')
  const rights = new Set(permissionsOf(user.roles).filter((permission) => caller.permissions.has(permission)))
  return { user, rights }
}

/** Throws `forbidden` if the caller lacks one of these permissions. */
export function requireCurrentRights({ rights }: CurrentRights, permissions: readonly Permission[]): void {
  const missing = permissions.find((permission) => !rights.has(permission))
  if (missing !== undefined) throw platformError('forbidden', { requiredPermission: missing })
}
