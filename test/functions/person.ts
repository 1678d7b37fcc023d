import { randomUUID } from 'node:crypto'
import type { Role } from '@platform/contract/permission'
import type { Caller } from '@platform/core/caller'
import { now } from '@platform/core/clock'
import * as keys from '@platform/core/db/keys'
import { create } from '@platform/core/db/table'
import { transact } from '@platform/core/db/transact'
import { newId } from '@platform/core/id'
import { hashPassword } from '@platform/core/accounts/password'
import { insertWrite, nextSortTimeMs, readHead } from '@platform/core/db/offset-list'
import * as Session from '@platform/core/accounts/session'
import * as Setup from '@platform/core/platform/setup'
import { issueAccessToken, verifyAccessToken } from '@platform/core/signing/access-token'
import { createUserWrites, usersOf } from '@platform/core/accounts/user'
import { administrator, adminToken, bootstrapPlatform } from '../support/fixtures.ts'

/** People who are really there, with a role and a session, for suites that call every operation. */

export type Headers = Record<string, string>

/** Somebody who is signed in. */
export interface Person {
  userId: string
  organisationId: string
  username: string
  sessionId: string
  headers: Headers
  /** Somebody of the organisation with all rights that it knows: makes the things that a request is about. */
  strong: Headers
}

export const password = 'correct horse battery'

await bootstrapPlatform()
const { accessToken } = await Setup.complete({ ...administrator, initialAdminToken: await adminToken() })
/** The organisation that setup created: the one that has platform administrators. */
const { organisationId: platformId } = await verifyAccessToken(accessToken)
const passwordHash = await hashPassword(password, 'everybody')

/** A new user with a role, signed in; of a new organisation where none is given. */
export async function personOf(role: Role, given = homeOf(role)): Promise<Person> {
  const organisationId = given ?? (await newOrganisation())
  const head = await readHead(usersOf(organisationId))
  const createdAtMs = nextSortTimeMs(head)
  const [userId, username] = [newId('user', createdAtMs), `u-${randomUUID()}`]
  const facts = { email: `${username}@example.com`, authProvider: 'local', createdAtMs }
  const user = { id: userId, organisationId, username, roles: [role], ...facts }
  const session = Session.open(user, { address: '192.0.2.1' })
  const entering = insertWrite(usersOf(organisationId), head, createdAtMs)
  const refusal = await transact([...createUserWrites(user, passwordHash), entering, ...session.writes])
  if (refusal) throw new Error(`${username} could not be made.`)
  const identity = { userId, organisationId, sessionId: session.id }
  const headers = await bearerOf(identity, role)
  const strongest = organisationId === platformId ? 'PlatformAdmin' : 'OrgAdmin'
  const { headers: strong } = role === strongest ? { headers } : await personOf(strongest, organisationId)
  return { ...identity, username, headers, strong }
}

const homeOf = (role: Role): string | undefined => (role === 'PlatformAdmin' ? platformId : undefined)

async function newOrganisation(): Promise<string> {
  const id = newId('org')
  await transact([create(keys.organisation(id), { id, name: id, isPlatform: false, createdAtMs: now() })])
  return id
}

type Identity = Pick<Caller, 'userId' | 'organisationId' | 'sessionId'>

const bearerOf = async (identity: Identity, role: Role): Promise<Headers> => ({
  authorization: `Bearer ${await issueAccessToken({ ...identity, roles: [role] })}`,
})

/** A token that is valid now, for somebody whose first one has expired. */
export const renewed = (who: Person, role: Role = 'OrgAdmin'): Promise<Headers> => bearerOf(who, role)
