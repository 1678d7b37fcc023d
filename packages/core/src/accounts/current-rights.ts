import { type Permission, permissionsOf } from '@platform/contract/permission'
import { type Caller } from '../caller.ts'
import * as keys from '../db/keys.ts'
import { getConsistent, type Item } from '../db/table.ts'
import { platformError } from '../error.ts'
import { isOpen, parseSession } from './session.ts'
import { parseUser, type User } from './user.ts'
import { isProviderEnabled } from './provider-status.ts'

/**
 * Access tokens live on for minutes after roles were taken away, or the session or the user removed. Whoever hands out
 * access that lasts longer than that, be it to a person, a program, a relay or a receiver, is looked up first.
 */

/** Who a caller is at this moment, and what it may do. */
export interface CurrentRights {
  user: User
  /** What both the user's roles and the token allow. */
  rights: ReadonlySet<Permission>
}

/**
 * The standing of a caller that holds these permissions still, and with it whatever else is needed. Throws
 * `unauthenticated` where the user or its session is no more, or nobody vouches for it, and `forbidden`. One call for up to
 * 98 keys; two for a user of an identity provider.
 */
export async function reauthorize(
  caller: Caller,
  permissions: readonly Permission[],
  wanted: readonly keys.Key[] = [],
): Promise<[CurrentRights, ...(Item | undefined)[]]> {
  const { organisationId, userId, sessionId } = caller
  const own = [keys.user(organisationId, userId), keys.session(sessionId)]
  const [user, session, ...others] = await getConsistent([...own, ...wanted])
  const who = await standing(caller, user, session)
  requireCurrentRights(who, permissions)
  return [who, ...others]
}

async function standing(
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

/** Refuses a caller that lacks one of these permissions by now. */
export function requireCurrentRights({ rights }: CurrentRights, permissions: readonly Permission[]): void {
  const lacking = permissions.find((permission) => !rights.has(permission))
  if (lacking !== undefined) throw platformError('forbidden', { requiredPermission: lacking })
}
