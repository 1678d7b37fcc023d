import { permissionsOf } from '@platform/contract/permission'
import type { UserCreation } from '@platform/contract/user'
import type { Caller } from '../caller.ts'
import * as keys from '../db/keys.ts'
import { platformError } from '../error.ts'
import { isId } from '../id.ts'
import { parseOrganisation } from './organisation.ts'
import { checkQuota } from './quota.ts'
import { type ListHead, parseHead } from '../db/offset-list.ts'
import { requireCurrentRights, type CurrentRights, reauthorize } from './current-rights.ts'
import { parseUser, usersOf } from './user.ts'

/** Callers cannot grant, change or remove rights that exceed their own. */

export interface TargetOrganisation {
  organisationId: string
  isOwn: boolean
  isPlatform: boolean
  head: ListHead
  /** A new password must not be this name. */
  platformName: unknown
}

export async function targetOrganisationFor(
  caller: Caller,
  { organisationId = caller.organisationId, roles, username }: UserCreation,
): Promise<TargetOrganisation> {
  if (!isId('org', organisationId)) throw platformError('organisation_not_found')
  const itemKeys = [
    keys.organisation(organisationId),
    usersOf(organisationId).head,
    keys.username(username),
    keys.administrators(organisationId),
    keys.platform(),
  ]
  const [callerRights, organisation, head, credential, administrators, platform] = await reauthorize(
    caller,
    ['users:admin'],
    itemKeys,
  )
  const isPlatform = organisation !== undefined && parseOrganisation(organisation).isPlatform
  const isOwn = organisationId === caller.organisationId
  const platformName = platform?.['platformName']
  const target = { organisationId, isOwn, isPlatform, head: parseHead(head), platformName }
  if (!target.isOwn) {
    if (organisation === undefined || !callerRights.rights.has('platform:admin'))
      throw platformError('organisation_not_found')
    if (Number(administrators?.['count'] ?? 0) > 0) throw platformError('organisation_has_users')
  }
  checkGrantable(roles, callerRights, target)
  if (credential !== undefined) throw platformError('username_taken')
  checkQuota(organisation, 'users', target.head.total)
  return target
}

export function checkGrantable(
  roles: readonly string[],
  { rights }: CurrentRights,
  { isOwn, isPlatform }: Omit<TargetOrganisation, 'head' | 'platformName'>,
): void {
  const isAllowedHere = roles.includes('PlatformAdmin') ? isOwn && isPlatform : isOwn || roles.includes('OrgAdmin')
  const isWithinRights = permissionsOf(roles).every((permission) => rights.has(permission))
  if (!isAllowedHere || !isWithinRights) throw platformError('role_not_grantable')
}

export async function findManageableUser(caller: Caller, userId: string) {
  if (!isId('user', userId)) throw platformError('user_not_found')
  const { organisationId } = caller
  const itemKeys = [
    keys.organisation(organisationId),
    usersOf(organisationId).head,
    keys.user(organisationId, userId),
    keys.platform(),
  ]
  const [callerRights, organisation, head, userItem, platform] = await reauthorize(caller, ['users:admin'], itemKeys)
  const user = userItem && parseUser(userItem)
  if (user === undefined) throw platformError('user_not_found')
  requireCurrentRights(callerRights, permissionsOf(user.roles))
  const isPlatform = organisation !== undefined && parseOrganisation(organisation).isPlatform
  const platformName = platform?.['platformName']
  return {
    user,
    callerRights,
    target: { organisationId, isOwn: true, isPlatform, head: parseHead(head), platformName },
  }
}
