import { randomBytes } from 'node:crypto'
import { expectStatus } from './answer.ts'
import type { Client } from './client.ts'
import type { Platform } from './platform.ts'

export interface TestUser {
  id: string
  organisationId: string
  username: string
  password: string
  client: Client
  tokens: any
}

const usersPath = '/api/v1/users'

export const newUserBody = (roles: readonly string[]) => {
  const name = `conformance-${randomBytes(6).toString('hex')}`
  return { username: name, email: `${name}@example.com`, password: randomBytes(12).toString('hex'), roles }
}

export async function createUser(platform: Platform, roles: readonly string[]): Promise<TestUser> {
  const creator = await platform.admin
  const body = newUserBody(roles)
  const { id, organisationId } = expectStatus(await creator.post(usersPath, body), 201)
  platform.removeLater(creator, `${usersPath}/${id}`)
  return signedIn(platform, { id, organisationId, ...body })
}

async function signedIn(platform: Platform, user: Omit<TestUser, 'client' | 'tokens'>): Promise<TestUser> {
  const { id, organisationId, username, password } = user
  const tokens = await platform.signIn({ username, password })
  return { id, organisationId, username, password, tokens, client: platform.anonymous.withToken(tokens.accessToken) }
}

/**
 * The first OrgAdmin of another organisation. Organisations cannot be deleted, so those without users are reused. The
 * OrgAdmin removes itself at the end.
 */
export async function createTenant(platform: Platform): Promise<TestUser> {
  const admin = await platform.admin
  const body = newUserBody(['OrgAdmin'])
  for await (const organisationId of organisationIds(platform, admin)) {
    const response = await admin.post(usersPath, { ...body, organisationId })
    // Another run uses it, or did not clean up.
    if (response.status === 409 && response.body.error === 'organisation_has_users') continue
    const { id } = expectStatus(response, 201)
    const tenant = await signedIn(platform, { id, organisationId, ...body })
    const client = platform.renewingClient(body, tenant.tokens.accessToken)
    platform.removeLater(client, `${usersPath}/${id}`)
    return { ...tenant, client }
  }
  throw new Error('unreachable')
}

const organisationsPath = '/api/v1/platform/organisations'

async function* organisationIds(platform: Platform, admin: Client): AsyncGenerator<string> {
  const { items } = expectStatus(await admin.get(`${organisationsPath}?pageSize=100`), 200)
  for (const { id, name } of items) if (name.startsWith('conformance ')) yield id
  for (;;) yield expectStatus(await admin.post(organisationsPath, { name: platform.newName() }), 201).id
}
