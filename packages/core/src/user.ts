import { type UserProfile } from '@platform/contract/auth'
import { permissionsOf } from '@platform/contract/permission'
import * as z from 'zod'
import { type Caller } from './caller.ts'
import { iso } from './clock.ts'
import * as keys from './db/keys.ts'
import { create, get } from './db/table.ts'
import { fault } from './fault.ts'

const Row = z.object({
  id: z.string(),
  organisationId: z.string(),
  username: z.string(),
  email: z.string(),
  roles: z.array(z.string()),
  authProvider: z.string(),
  createdAtMs: z.number(),
})
export type User = z.infer<typeof Row>

/** How a user signs in by name: stored under the name, which is unique on the platform. */
export const Credential = z.object({ userId: z.string(), organisationId: z.string(), passwordHash: z.string() })

/** Steps that make a user with a password; the second is refused where the name is taken. */
export const createSteps = (user: User, passwordHash: string) => [
  create(keys.user(user.organisationId, user.id), { ...user }),
  create(keys.username(user.username), { userId: user.id, organisationId: user.organisationId, passwordHash }),
]

/** A user of an organisation, or undefined. One call. */
export async function find(organisationId: string, userId: string): Promise<User | undefined> {
  const item = await get(keys.user(organisationId, userId))
  return item && Row.parse(item)
}

/** The signed-in user's own profile. One call. */
export async function profile(caller: Caller): Promise<UserProfile> {
  const user = await find(caller.organisationId, caller.userId)
  if (user === undefined) throw fault('unauthenticated')
  const { createdAtMs, ...rest } = user
  return { ...rest, createdAt: iso(createdAtMs), permissions: permissionsOf(user.roles) }
}
