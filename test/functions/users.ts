import { randomUUID } from 'node:crypto'
import type { Role } from '@platform/contract/permission'
import { hashPassword } from '@platform/core/accounts/password'
import * as Session from '@platform/core/accounts/session'
import { createUserWrites, usersOf } from '@platform/core/accounts/user'
import type { Caller } from '@platform/core/caller'
import { now } from '@platform/core/clock'
import * as keys from '@platform/core/db/keys'
import { insertWrite, nextSortTimeMs, readHead } from '@platform/core/db/offset-list'
import { create, upsert } from '@platform/core/db/table'
import { transact } from '@platform/core/db/transact'
import { newId } from '@platform/core/id'
import * as Setup from '@platform/core/platform/setup'
import { issueAccessToken, verifyAccessToken } from '@platform/core/signing/access-token'
import { administrator, adminToken, bootstrapPlatform } from '../support/fixtures.ts'

export type Headers = Record<string, string>

export interface SignedInUser {
  userId: string
  organisationId: string
  username: string
  sessionId: string
  headers: Headers
  adminHeaders: Headers
}

export const password = 'correct horse battery'

await bootstrapPlatform()
const { accessToken } = await Setup.complete({ ...administrator, initialAdminToken: await adminToken() })
const { organisationId: platformId } = await verifyAccessToken(accessToken)
const passwordHash = await hashPassword(password, 'salt')

/**
 * Creates a user with a role. By default, a PlatformAdmin belongs to the platform organisation, and any other user to a
 * new organisation.
 */
export async function newUser(role: Role, organisation = homeOf(role)): Promise<SignedInUser> {
  const organisationId = organisation ?? (await newOrganisation())
  const head = await readHead(usersOf(organisationId))
  const createdAtMs = nextSortTimeMs(head)
  const [userId, username] = [newId('user', createdAtMs), `u-${randomUUID()}`]
  const account = { email: `${username}@example.com`, authProvider: 'local', createdAtMs }
  const user = { id: userId, organisationId, username, roles: [role], ...account }
  const session = Session.open(user, { address: '192.0.2.1' })
  const listing = insertWrite(usersOf(organisationId), head, createdAtMs)
  const adminRole = organisationId === platformId ? 'PlatformAdmin' : 'OrgAdmin'
  const countWrites = role === adminRole ? [upsert(keys.administrators(organisationId), { add: { count: 1 } })] : []
  const failure = await transact([...createUserWrites(user, passwordHash), listing, ...session.writes, ...countWrites])
  if (failure) throw new Error(`The user ${username} could not be created.`)
  const identity = { userId, organisationId, sessionId: session.id }
  const headers = await accessTokenOf(identity, role)
  const { headers: adminHeaders } = role === adminRole ? { headers } : await newUser(adminRole, organisationId)
  return { ...identity, username, headers, adminHeaders }
}

const homeOf = (role: Role): string | undefined => (role === 'PlatformAdmin' ? platformId : undefined)

async function newOrganisation(): Promise<string> {
  const id = newId('org')
  await transact([create(keys.organisation(id), { id, name: id, isPlatform: false, createdAtMs: now() })])
  return id
}

export const accessTokenOf = async (
  identity: Pick<Caller, 'userId' | 'organisationId' | 'sessionId'>,
  role: Role,
): Promise<Headers> => ({ authorization: `Bearer ${await issueAccessToken({ ...identity, roles: [role] })}` })
