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
 * Creates an organisation and its first OrgAdmin. Neither is removed, because an organisation keeps its last
 * administrator.
 */
export async function createTenant(platform: Platform): Promise<TestUser> {
  const admin = await platform.admin
  const body = newUserBody(['OrgAdmin'])
  const { id: organisationId } = expectStatus(await admin.post(organisationsPath, { name: platform.newName() }), 201)
  const { id } = expectStatus(await admin.post(usersPath, { ...body, organisationId }), 201)
  const tenant = await signedIn(platform, { id, organisationId, ...body })
  return { ...tenant, client: platform.renewingClient(body, tenant.tokens.accessToken) }
}

const organisationsPath = '/api/v1/platform/organisations'
