import { type Permission, permissionsOf } from '@platform/contract/permission'
import { type Caller } from '../caller.ts'
import * as keys from '../db/keys.ts'
import { getConsistent, type Item } from '../db/table.ts'
import { platformError } from '../error.ts'
import { isOpen, parseSession } from './session.ts'
import { parseUser, type User, isProviderEnabled } from './user.ts'

/**
 * An access token stays valid for minutes after its user, session or a role was removed. Use cases that grant longer
 * access therefore check the caller's current rights.
 */

export interface CurrentRights {
  user: User
  /** Permissions that both the user's roles and the caller's token include. */
  rights: ReadonlySet<Permission>
}

/**
 * Throws `unauthenticated` if the user, its session or its identity provider is no longer valid, and `forbidden` if the
 * caller lacks one of `permissions`. Also reads up to 98 further items.
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

export function requireCurrentRights({ rights }: CurrentRights, permissions: readonly Permission[]): void {
  const missing = permissions.find((permission) => !rights.has(permission))
  if (missing !== undefined) throw platformError('forbidden', { requiredPermission: missing })
}
