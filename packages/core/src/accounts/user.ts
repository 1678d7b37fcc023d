import { type UserProfile } from '@platform/contract/auth'
import { type Permission, permissionsOf, roleNames } from '@platform/contract/permission'
import { type RoleDescription } from '@platform/contract/user'
import * as z from 'zod'
import { type Caller } from '../caller.ts'
import { iso } from '../clock.ts'
import { createCredential } from './credential.ts'
import { type Change, type Condition, unchanged } from '../db/expression.ts'
import * as keys from '../db/keys.ts'
import { create, get, type Item, type WriteItem } from '../db/table.ts'
import { platformError } from '../error.ts'
import { isId } from '../id.ts'
import { type OffsetList, readPage } from '../db/offset-list.ts'

const Row = z.object({
  id: z.string(),
  organisationId: z.string(),
  username: z.string(),
  email: z.string(),
  roles: z.array(z.string()),
  /** `local`, or the identity provider that vouches for the user. */
  authProvider: z.string(),
  /** Of an identity provider's user: with the provider the key of the item that links its identity with this row. */
  subjectHash: z.string().optional(),
  createdAtMs: z.number(),
  /** Goes up with every change that was decided by what the row says. */
  version: z.number().default(0),
  /** Sessions that were opened in an earlier epoch have ended, all but the kept one. */
  epoch: z.number().default(0),
  keptSessionId: z.string().optional(),
  /** The API tokens, by id. */
  tokenIds: z.set(z.string()).default(() => new Set<string>()),
})
export type User = z.infer<typeof Row>

/** A user of its stored item. */
export const parseUser = (item: Item): User => Row.parse(item)

/** The condition that a user is as it was read. A row that has never counted a change has no version, and reads as 0. */
export const userUnchanged = ({ version }: User): Condition => ({ version: unchanged(version || undefined) })

/** The users of an organisation. */
export const usersOf = (organisationId: string): OffsetList => ({
  head: keys.userOffsets(organisationId),
  pk: keys.user(organisationId, '').pk,
  prefix: 'user',
})

/** Whether the platform itself keeps the user's password, e-mail and roles. */
export const isLocal = ({ authProvider }: Pick<User, 'authProvider'>): boolean => authProvider === 'local'

/** Steps that make a user, with a password where it has one here; the second is refused where the name is taken. */
export const createUserWrites = (user: z.input<typeof Row>, passwordHash?: string): [WriteItem, WriteItem] => [
  create(keys.user(user.organisationId, user.id), { ...user, version: 1 }),
  createCredential(user, passwordHash),
]

/** The change of a user's row that ends its sessions; with `renewCredential` in one transaction. */
export const endSessions = (keptSessionId?: string): Change => ({
  // An API token that is being made by one of these sessions is decided anew.
  add: { epoch: 1, version: 1 },
  ...(keptSessionId === undefined ? { remove: ['keptSessionId'] } : { set: { keptSessionId } }),
})

/** A user of an organisation, or undefined. One call. */
export async function find(organisationId: string, userId: string): Promise<User | undefined> {
  const item = isId('user', userId) ? await get(keys.user(organisationId, userId)) : undefined
  return item && parseUser(item)
}

/** The wire form of a user. */
export const view = (
  { id, username, email, roles, organisationId, authProvider, createdAtMs }: z.input<typeof Row>,
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

/** The signed-in user's own profile, with what an API token leaves of its permissions. One call. */
export async function profile(caller: Caller): Promise<UserProfile> {
  const user = await find(caller.organisationId, caller.userId)
  if (user === undefined) throw platformError('unauthenticated')
  const held = permissionsOf(user.roles)
  return view(user, caller.tokenId === undefined ? held : held.filter((each) => caller.permissions.has(each)))
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

/** The roles, and which of them the caller may give to a colleague: nobody hands out more than the own rights. No call. */
export const roles = ({ permissions }: Caller): { items: RoleDescription[] } => ({
  items: roleNames.map((name) => {
    const granted = permissionsOf([name])
    return { name, permissions: granted, grantable: granted.every((permission) => permissions.has(permission)) }
  }),
})
