import { type Permission, permissionsOf } from '@platform/contract/permission'
import { type Caller } from './caller.ts'
import * as keys from './db/keys.ts'
import { type Item } from './db/table.ts'
import { fault } from './fault.ts'
import { isOpen, parseSession } from './session.ts'
import { parseUser, type User } from './user.ts'

/**
 * Access tokens live on for minutes after roles were taken away, or the session or the user removed. Whoever hands out
 * what lasts longer than that, users, roles and API tokens, is looked up first.
 */

/** Who a caller is at this moment, and what it may do. */
export interface Standing {
  user: User
  /** What both the user's roles and the token allow. */
  rights: ReadonlySet<Permission>
}

/** What tells a caller's standing: two keys, to be read with whatever else is needed. */
export const standingKeys = ({ organisationId, userId, sessionId }: Caller): [keys.Key, keys.Key] => [
  keys.user(organisationId, userId),
  keys.session(sessionId),
]

/** The standing that the two items tell. Throws `unauthenticated` where the user or its session is no more. */
export function standing(caller: Caller, userItem: Item | undefined, sessionItem: Item | undefined): Standing {
  const user = userItem && parseUser(userItem)
  const session = sessionItem && parseSession(sessionItem)
  if (user === undefined) throw fault('unauthenticated')
  if (caller.tokenId === undefined && (session === undefined || !isOpen(session, user))) throw fault('unauthenticated')
  const rights = new Set(permissionsOf(user.roles).filter((permission) => caller.permissions.has(permission)))
  return { user, rights }
}

/** Refuses a caller that lacks one of these permissions by now. */
export function requireRights({ rights }: Standing, permissions: readonly Permission[]): void {
  const lacking = permissions.find((permission) => !rights.has(permission))
  if (lacking !== undefined) throw fault('forbidden', { requiredPermission: lacking })
}
