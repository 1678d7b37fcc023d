import { randomUUID } from 'node:crypto'
import { type Role } from '@platform/contract/permission'
import { type Caller } from '@platform/core/caller'
import { now, shiftClock } from '@platform/core/clock'
import * as Organisation from '@platform/core/accounts/organisation'
import { signIn } from '@platform/core/accounts/session'
import { complete } from '@platform/core/platform/setup'
import { verifyAccessToken } from '@platform/core/signing/access-token'
import * as UserAdmin from '@platform/core/accounts/manage-users'
import { administrator, adminToken, started } from './world.ts'

/** People who are really there, each signed in with a password; organisations that a platform administrator made. */

export const password = 'correct horse battery'

let addresses = 0
/** An address that nobody has failed from yet. */
export const somewhere = () => ({ address: `198.51.100.${++addresses}` })

/** Goes to the start of the next minute: failed sign-ins are counted by the minute. */
export const atMinuteStart = (): void => shiftClock(60_000 - (now() % 60_000))

/** Somebody who is signed in. */
export interface Person {
  id: string
  username: string
  credentials: { username: string; password: string }
  caller: Caller
  accessToken: string
  refreshToken: string
}

/** Signs in; several times, one has several sessions. */
export async function signedIn(username: string, secret = password): Promise<Person> {
  const credentials = { username, password: secret }
  const { accessToken, refreshToken } = await signIn(credentials, somewhere())
  const caller = await verifyAccessToken(accessToken)
  return { id: caller.userId, username, credentials, caller, accessToken, refreshToken }
}

/** Sets the platform up; answers its administrator. */
export async function platformAdministrator(): Promise<Person> {
  await started()
  await complete({ ...administrator, initialAdminToken: await adminToken() })
  return signedIn(administrator.adminUsername)
}

/** What a new user may look like. */
export const newUser = (roles: Role[] = ['Operator'], username = `u-${randomUUID()}`) => ({
  username,
  email: `${username}@example.com`,
  password,
  roles,
})

/** A new user of the caller's organisation, signed in. */
export async function colleague(caller: Caller, ...roles: Role[]): Promise<Person> {
  const { username } = await UserAdmin.create(caller, newUser(roles))
  return signedIn(username)
}

/** The administrator of a new organisation, signed in. */
export async function tenantAdministrator(platform: Caller): Promise<Person> {
  const { id: organisationId } = await Organisation.create(platform, { name: `Tenant ${randomUUID()}` })
  const { username } = await UserAdmin.create(platform, { ...newUser(['OrgAdmin']), organisationId })
  return signedIn(username)
}
