import { type Permission, permissionsOf } from '@platform/contract/permission'
import * as keys from '../db/keys.ts'
import { type Item, query } from '../db/table.ts'
import { parseUser } from '../user/user.ts'

/** Who is told of something: one user, whoever holds a permission, or both. */
export interface Audience {
  userId?: string
  permission?: Permission
}

/** Finds the users that audiences mean. One call per 1 MB of users, and none where no audience asks for a permission. */
export async function recipientsOf(
  organisationId: string,
  audiences: readonly Audience[],
): Promise<(audience: Audience) => ReadonlySet<string>> {
  const asked = audiences.some(({ permission }) => permission !== undefined)
  const users = asked ? await allUsers(organisationId) : []
  return ({ userId, permission }) => {
    const holders = users.filter(({ permissions }) => permission !== undefined && permissions.includes(permission))
    return new Set([...(userId === undefined ? [] : [userId]), ...holders.map(({ id }) => id)])
  }
}

async function allUsers(organisationId: string): Promise<{ id: string; permissions: Permission[] }[]> {
  const users: { id: string; permissions: Permission[] }[] = []
  let after: Item | undefined
  do {
    const part = await query({ pk: keys.user(organisationId, '').pk, ...(after && { after }) })
    const found = part.items.map(parseUser)
    users.push(...found.map(({ id, roles }) => ({ id, permissions: permissionsOf(roles) })))
    after = part.next
  } while (after !== undefined)
  return users
}
