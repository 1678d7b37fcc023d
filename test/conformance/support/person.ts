import { randomBytes } from 'node:crypto'
import { answered } from './answer.ts'
import type { Client } from './client.ts'
import type { Platform } from './platform.ts'

/** A user that this run has made, signed in. */
export interface Person {
  id: string
  organisationId: string
  username: string
  password: string
  /** Calls as this user, in the session of `tokens`. */
  client: Client
  tokens: any
}

const usersPath = '/api/v1/users'

/** What creates a user that no other run creates. */
export const newUserBody = (roles: readonly string[]) => {
  const name = `conformance-${randomBytes(6).toString('hex')}`
  return { username: name, email: `${name}@example.com`, password: randomBytes(12).toString('hex'), roles }
}

/** Creates a user in the organisation of whoever creates it. It is removed when the run ends. */
export async function newPerson(platform: Platform, roles: readonly string[]): Promise<Person> {
  const creator = await platform.admin
  const body = newUserBody(roles)
  const { id, organisationId } = answered(await creator.post(usersPath, body), 201)
  platform.leftovers.made(creator, `${usersPath}/${id}`)
  return signedIn(platform, { id, organisationId, ...body })
}

async function signedIn(platform: Platform, person: Omit<Person, 'client' | 'tokens'>): Promise<Person> {
  const { id, organisationId, username, password } = person
  const tokens = await platform.signIn({ username, password })
  return { id, organisationId, username, password, tokens, client: platform.anonymous.withToken(tokens.accessToken) }
}

/**
 * The first OrgAdmin of another organisation. Organisations stay for good, so one that an earlier run has left without
 * users serves again. The OrgAdmin removes itself when the run ends, after everything else of the organisation.
 */
export async function newTenant(platform: Platform): Promise<Person> {
  const admin = await platform.admin
  const body = newUserBody(['OrgAdmin'])
  for await (const organisationId of organisationIds(platform, admin)) {
    const answer = await admin.post(usersPath, { ...body, organisationId })
    // Another run is there, or was and could not clean up.
    if (answer.status === 409 && answer.body.error === 'organisation_has_users') continue
    const { id } = answered(answer, 201)
    const tenant = await signedIn(platform, { id, organisationId, ...body })
    const client = platform.lasting(body, tenant.tokens.accessToken)
    platform.leftovers.made(client, `${usersPath}/${id}`)
    return { ...tenant, client }
  }
  throw new Error('A new organisation has users.')
}

const organisationsPath = '/api/v1/platform/organisations'

/** Organisations of earlier runs, and then a new one. */
async function* organisationIds(platform: Platform, admin: Client): AsyncGenerator<string> {
  const { items } = answered(await admin.get(`${organisationsPath}?pageSize=100`), 200)
  for (const { id, name } of items) if (name.startsWith('conformance ')) yield id
  yield answered(await admin.post(organisationsPath, { name: platform.newName() }), 201).id
}
