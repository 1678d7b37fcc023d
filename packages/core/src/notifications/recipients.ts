import { type Permission, permissionsOf } from '@platform/contract/permission'
import * as keys from '../db/keys.ts'
import { queryAll } from '../db/table.ts'
import { parseUser } from '../accounts/user.ts'

/** One user, all users with a permission, or both. */
export interface Audience {
  userId?: string
  permission?: Permission
}

export async function recipientsOf(
  organisationId: string,
  audiences: readonly Audience[],
): Promise<(audience: Audience) => ReadonlySet<string>> {
  const needsUsers = audiences.some(({ permission }) => permission !== undefined)
  const users = needsUsers ? await readUsers(organisationId) : []
  return ({ userId, permission }) => {
    const permittedUsers = users.filter(
      ({ permissions }) => permission !== undefined && permissions.includes(permission),
    )
    return new Set([...(userId === undefined ? [] : [userId]), ...permittedUsers.map(({ id }) => id)])
  }
}

async function readUsers(organisationId: string): Promise<{ id: string; permissions: Permission[] }[]> {
  const users = (await queryAll({ pk: keys.user(organisationId, '').pk })).map(parseUser)
  return users.map(({ id, roles }) => ({ id, permissions: permissionsOf(roles) }))
}
