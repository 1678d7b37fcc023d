import type { UserProfile } from '@platform/contract/auth'
import { type Permission, permissionsOf, roleNames } from '@platform/contract/permission'
import type { RoleDescription } from '@platform/contract/user'
import * as z from 'zod'
import type { Caller } from '../caller.ts'
import { iso } from '../clock.ts'
import { type Change, type Condition, unchanged } from '../db/expression.ts'
import * as keys from '../db/keys.ts'
import { type OffsetList, readPage } from '../db/offset-list.ts'
import { create, get, type Item, type WriteItem } from '../db/table.ts'
import { platformError } from '../error.ts'
import { isId } from '../id.ts'
import { createCredential } from './credential.ts'

const User = z.object({
  id: z.string(),
  organisationId: z.string(),
  username: z.string(),
  email: z.string(),
  roles: z.array(z.string()),
  /** `local`, or the user's identity provider. */
  authProvider: z.string(),
  /** For users of identity providers: part of the key of the item that links the identity to this record. */
  subjectHash: z.string().optional(),
  createdAtMs: z.number(),
  /** Incremented by each change that depends on the record. */
  version: z.number().default(0),
  /** Sessions of earlier epochs have ended, except the kept one. */
  epoch: z.number().default(0),
  keptSessionId: z.string().optional(),
  /** Ids of the API tokens. */
  tokenIds: z.set(z.string()).default(() => new Set<string>()),
})
export type User = z.infer<typeof User>

export const parseUser = (item: Item): User => User.parse(item)

/** Whether the record is unchanged since it was read. Records without a version have version 0. */
export const userUnchanged = ({ version }: User): Condition => ({ version: unchanged(version || undefined) })

export const usersOf = (organisationId: string): OffsetList => ({
  head: keys.userOffsets(organisationId),
  pk: keys.user(organisationId, '').pk,
  prefix: 'user',
})

/** Whether the platform manages the user's password, e-mail and roles. */
export const isLocal = ({ authProvider }: Pick<User, 'authProvider'>): boolean => authProvider === 'local'

/** The writes that create a user, with a password for local accounts. The second one fails if the name is taken. */
export const createUserWrites = (user: z.input<typeof User>, passwordHash?: string): [WriteItem, WriteItem] => [
  create(keys.user(user.organisationId, user.id), { ...user, version: 1 }),
  createCredential(user, passwordHash),
]

/** The change of a user record that ends its sessions; use it with `renewCredential` in one transaction. */
export const endSessions = (keptSessionId?: string): Change => ({
  // Makes a concurrent API token creation by one of these sessions retry.
  add: { epoch: 1, version: 1 },
  ...(keptSessionId === undefined ? { remove: ['keptSessionId'] } : { set: { keptSessionId } }),
})

/** A user of an organisation, or undefined. One call. */
export async function find(organisationId: string, userId: string): Promise<User | undefined> {
  const item = isId('user', userId) ? await get(keys.user(organisationId, userId)) : undefined
  return item && parseUser(item)
}

/** The API representation of a user. */
export const view = (
  { id, username, email, roles, organisationId, authProvider, createdAtMs }: z.input<typeof User>,
  permissions: Permission[] = permissionsOf(roles),
): UserProfile => ({
  id,
  username,
  email,
  roles,
  organisationId,
  authProvider,
  createdAt: iso(createdAtMs),
  permissions,
})

/** The caller's profile, with the permissions that an API token leaves. One call. */
export async function profile(caller: Caller): Promise<UserProfile> {
  const user = await find(caller.organisationId, caller.userId)
  if (user === undefined) throw platformError('unauthenticated')
  const granted = permissionsOf(user.roles)
  return view(user, caller.tokenId === undefined ? granted : granted.filter((each) => caller.permissions.has(each)))
}

/** One page of the organisation's users, newest first. Two calls. */
export async function list({ organisationId }: Caller, query: { page: number; pageSize: number }) {
  const { items, ...page } = await readPage(usersOf(organisationId), query)
  return { items: items.map((item) => view(parseUser(item))), ...page }
}

/** One user of the caller's organisation. One call. */
export async function read({ organisationId }: Caller, userId: string): Promise<UserProfile> {
  const user = await find(organisationId, userId)
  if (user === undefined) throw platformError('user_not_found')
  return view(user)
}

/** The roles, and whether the caller has all their permissions and may grant them. No call. */
export const roles = ({ permissions }: Caller): { items: RoleDescription[] } => ({
  items: roleNames.map((name) => {
    const included = permissionsOf([name])
    return { name, permissions: included, grantable: included.every((permission) => permissions.has(permission)) }
  }),
})

/** Whether the item is an enabled identity provider. */
export const isEnabledProvider = (item: Item | undefined): boolean => item?.['isEnabled'] === true

/** Whether the user's provider is enabled. No call for a local user, one for others. */
export const isProviderEnabled = async (user: User): Promise<boolean> =>
  isLocal(user) || isEnabledProvider(await get(keys.identityProvider(user.authProvider)))
