import type { UserProfile } from '@platform/contract/auth'
import { type Permission, permissionsOf, roleNames } from '@platform/contract/permission'
import type { RoleDescription } from '@platform/contract/user'
import * as z from 'zod'
import type { Caller } from '../caller.ts'
import { iso, optionalTimestamp } from '../clock.ts'
import { type Change, type Condition, unchangedCondition } from '../db/expression.ts'
import * as keys from '../db/keys.ts'
import { type OffsetList, readPage } from '../db/offset-list.ts'
import { paged, type PageQuery } from '../db/paging.ts'
import { create, get, type Item, type WriteItem } from '../db/table.ts'
import { platformError } from '../error.ts'
import { isId } from '../id.ts'
import { createCredential } from './credential.ts'

const User = z.object({
  id: z.string(),
  organisationId: z.string(),
  username: z.string(),
  email: z.string(),
  /** From the identity provider; empty for local accounts. */
  displayName: z.string().default(''),
  roles: z.array(z.string()),
  /** `local`, or the id of the user's identity provider. */
  authProvider: z.string(),
  /**
   * Set for users of identity providers: the hashed subject in the key of the item that links the identity to this
   * user.
   */
  subjectHash: z.string().optional(),
  /** Set for users of directories: identifies the directory entry. */
  subject: z.string().optional(),
  /** When the identity provider last confirmed the user, accurate to one day. If absent, `createdAtMs` counts. */
  confirmedAtMs: z.number().optional(),
  /** Set while the identity provider does not confirm the user: API tokens are rejected. */
  suspendedAtMs: z.number().optional(),
  createdAtMs: z.number(),
  /** Incremented by every change of the record, except a change of `confirmedAtMs` alone. */
  version: z.number().default(0),
  /** Sessions of earlier epochs have ended, except `keptSessionId`. */
  epoch: z.number().default(0),
  keptSessionId: z.string().optional(),
  tokenIds: z.set(z.string()).default(() => new Set<string>()),
})
export type User = z.infer<typeof User>

export const parseUser = (item: Item): User => User.parse(item)

export const userUnchanged = ({ version }: User): Condition => ({ version: unchangedCondition(version || undefined) })

export const usersOf = (organisationId: string): OffsetList => ({
  head: keys.userOffsets(organisationId),
  pk: keys.user(organisationId, '').pk,
  prefix: 'user',
})

export const isLocal = ({ authProvider }: Pick<User, 'authProvider'>): boolean => authProvider === 'local'

export const createUserWrites = (user: z.input<typeof User>, passwordHash?: string): [WriteItem, WriteItem] => [
  create(keys.user(user.organisationId, user.id), { ...user, version: 1 }),
  createCredential(user, passwordHash),
]

/** Combine with `renewCredential` in one transaction, because both increment the epoch. */
export const endSessions = (keptSessionId?: string): Change => ({
  // The new version makes a concurrent creation of an API token retry, which checks the session again.
  add: { epoch: 1, version: 1 },
  ...(keptSessionId === undefined ? { remove: ['keptSessionId'] } : { set: { keptSessionId } }),
})

export async function find(organisationId: string, userId: string): Promise<User | undefined> {
  const item = isId('user', userId) ? await get(keys.user(organisationId, userId)) : undefined
  return item && parseUser(item)
}

export const view = (
  {
    id,
    username,
    displayName,
    email,
    roles,
    organisationId,
    authProvider,
    createdAtMs,
    suspendedAtMs,
  }: z.input<typeof User>,
  permissions: Permission[] = permissionsOf(roles),
): UserProfile => ({
  id,
  username,
  ...(displayName && { displayName }),
  email,
  roles,
  organisationId,
  authProvider,
  createdAt: iso(createdAtMs),
  ...optionalTimestamp('suspendedAt', suspendedAtMs),
  permissions,
})

export async function profile(caller: Caller): Promise<UserProfile> {
  const user = await find(caller.organisationId, caller.userId)
  if (user === undefined) throw platformError('unauthenticated')
  const grantedPermissions = permissionsOf(user.roles)
  return view(
    user,
    caller.tokenId === undefined
      ? grantedPermissions
      : grantedPermissions.filter((permission) => caller.permissions.has(permission)),
  )
}

export const list = ({ organisationId }: Caller, query: PageQuery) =>
  paged(['users', organisationId], query, async (page) => {
    const { items, ...rest } = await readPage(usersOf(organisationId), page)
    return { items: items.map((item) => view(parseUser(item))), ...rest }
  })

export async function read({ organisationId }: Caller, userId: string): Promise<UserProfile> {
  const user = await find(organisationId, userId)
  if (user === undefined) throw platformError('user_not_found')
  return view(user)
}

export const roles = ({ permissions }: Caller): { items: RoleDescription[] } => ({
  items: roleNames.map((name) => {
    const includedPermissions = permissionsOf([name])
    return {
      name,
      permissions: includedPermissions,
      grantable: includedPermissions.every((permission) => permissions.has(permission)),
    }
  }),
})

export const isEnabledProvider = (item: Item | undefined): boolean => item?.['isEnabled'] === true

export const isProviderEnabled = async (user: User): Promise<boolean> =>
  isLocal(user) || isEnabledProvider(await get(keys.identityProvider(user.authProvider)))

/** Returns the user of an item, unless the user lacks the permission, is suspended or has a disabled provider. */
export async function userWithPermission(item: Item | undefined, permission: Permission): Promise<User | undefined> {
  const user = item && parseUser(item)
  const isPermitted = user?.suspendedAtMs === undefined && permissionsOf(user?.roles ?? []).includes(permission)
  return user !== undefined && isPermitted && (await isProviderEnabled(user)) ? user : undefined
}
