import { permissionsOf } from '@platform/contract/permission'
import { type UserCreation } from '@platform/contract/user'
import { type Caller } from '../caller.ts'
import * as keys from '../db/keys.ts'
import { fault } from '../error.ts'
import { isId } from '../id.ts'
import { parseOrganisation } from './organisation.ts'
import { type ListHead, parseHead } from '../db/offset-list.ts'
import { requireRights, type Standing, standingWith } from './current-rights.ts'
import { parseUser, usersOf } from './user.ts'

/** How far an administrator of users reaches (D15): nobody hands out, changes or removes more than the own rights. */

/** An organisation, as somebody who administers users sees it. */
export interface Place {
  organisationId: string
  /** Whether the caller belongs to it. */
  isOwn: boolean
  isPlatform: boolean
  head: ListHead
}

/** Where the user shall be, once it is sure that the caller may put it there, and that the name is free. One call. */
export async function placeOf(
  caller: Caller,
  { organisationId = caller.organisationId, roles, username }: UserCreation,
): Promise<Place> {
  if (!isId('org', organisationId)) throw fault('organisation_not_found')
  const wanted = [keys.organisation(organisationId), usersOf(organisationId).head, keys.username(username)]
  const [who, organisation, head, namesake] = await standingWith(caller, ['users:admin'], wanted)
  const isPlatform = organisation !== undefined && parseOrganisation(organisation).isPlatform
  const place = { organisationId, isOwn: organisationId === caller.organisationId, isPlatform, head: parseHead(head) }
  if (!place.isOwn) {
    if (organisation === undefined || !who.rights.has('platform:admin')) throw fault('organisation_not_found')
    if (place.head.total > 0) throw fault('organisation_has_users')
  }
  checkRoles(roles, who, place)
  if (namesake !== undefined) throw fault('username_taken')
  return place
}

/** Refuses roles that the organisation cannot have, or that exceed the caller's own rights. */
export function checkRoles(
  roles: readonly string[],
  { rights }: Standing,
  { isOwn, isPlatform }: Omit<Place, 'head'>,
): void {
  const isFitting = roles.includes('PlatformAdmin') ? isOwn && isPlatform : isOwn || roles.includes('OrgAdmin')
  const isHeld = permissionsOf(roles).every((permission) => rights.has(permission))
  if (!isFitting || !isHeld) throw fault('role_not_grantable')
}

/** A user of the caller's organisation that the caller may change. One call. */
export async function targetOf(caller: Caller, userId: string) {
  if (!isId('user', userId)) throw fault('user_not_found')
  const { organisationId } = caller
  const isSelf = userId === caller.userId
  const wanted = [keys.organisation(organisationId), usersOf(organisationId).head]
  const others = isSelf ? [] : [keys.user(organisationId, userId)]
  const [who, organisation, head, other] = await standingWith(caller, ['users:admin'], [...wanted, ...others])
  const user = isSelf ? who.user : other && parseUser(other)
  if (user === undefined) throw fault('user_not_found')
  requireRights(who, permissionsOf(user.roles))
  const isPlatform = organisation !== undefined && parseOrganisation(organisation).isPlatform
  return { user, who, place: { organisationId, isOwn: true, isPlatform, head: parseHead(head) } }
}
