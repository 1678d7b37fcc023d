import { permissionsOf } from '@platform/contract/permission'
import { type UserCreation } from '@platform/contract/user'
import { type Caller } from '../caller.ts'
import * as keys from '../db/keys.ts'
import { platformError } from '../error.ts'
import { isId } from '../id.ts'
import { parseOrganisation } from './organisation.ts'
import { type ListHead, parseHead } from '../db/offset-list.ts'
import { requireCurrentRights, type CurrentRights, reauthorize } from './current-rights.ts'
import { parseUser, usersOf } from './user.ts'

/** Limits of user administration: callers cannot grant, change or remove rights beyond their own. */

/** An organisation from the point of view of a user administrator. */
export interface TargetOrganisation {
  organisationId: string
  /** Whether it is the caller's own organisation. */
  isOwn: boolean
  isPlatform: boolean
  head: ListHead
}

/** The target organisation of a new user, after checking the caller's rights and that the name is free. One call. */
export async function targetOrganisationFor(
  caller: Caller,
  { organisationId = caller.organisationId, roles, username }: UserCreation,
): Promise<TargetOrganisation> {
  if (!isId('org', organisationId)) throw platformError('organisation_not_found')
  const wanted = [keys.organisation(organisationId), usersOf(organisationId).head, keys.username(username)]
  const [who, organisation, head, namesake] = await reauthorize(caller, ['users:admin'], wanted)
  const isPlatform = organisation !== undefined && parseOrganisation(organisation).isPlatform
  const place = { organisationId, isOwn: organisationId === caller.organisationId, isPlatform, head: parseHead(head) }
  if (!place.isOwn) {
    if (organisation === undefined || !who.rights.has('platform:admin')) throw platformError('organisation_not_found')
    if (place.head.total > 0) throw platformError('organisation_has_users')
  }
  checkGrantable(roles, who, place)
  if (namesake !== undefined) throw platformError('username_taken')
  return place
}

/** Throws for roles that the organisation cannot have or that exceed the caller's rights. */
export function checkGrantable(
  roles: readonly string[],
  { rights }: CurrentRights,
  { isOwn, isPlatform }: Omit<TargetOrganisation, 'head'>,
): void {
  const isFitting = roles.includes('PlatformAdmin') ? isOwn && isPlatform : isOwn || roles.includes('OrgAdmin')
  const isHeld = permissionsOf(roles).every((permission) => rights.has(permission))
  if (!isFitting || !isHeld) throw platformError('role_not_grantable')
}

/** A user of the caller's organisation that the caller may change. One call. */
export async function findManageableUser(caller: Caller, userId: string) {
  if (!isId('user', userId)) throw platformError('user_not_found')
  const { organisationId } = caller
  const isSelf = userId === caller.userId
  const wanted = [keys.organisation(organisationId), usersOf(organisationId).head]
  const others = isSelf ? [] : [keys.user(organisationId, userId)]
  const [who, organisation, head, other] = await reauthorize(caller, ['users:admin'], [...wanted, ...others])
  const user = isSelf ? who.user : other && parseUser(other)
  if (user === undefined) throw platformError('user_not_found')
  requireCurrentRights(who, permissionsOf(user.roles))
  const isPlatform = organisation !== undefined && parseOrganisation(organisation).isPlatform
  return { user, who, place: { organisationId, isOwn: true, isPlatform, head: parseHead(head) } }
}
