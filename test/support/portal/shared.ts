import { expectStatus } from '../../conformance/support/answer.ts'
import { connect, type Platform } from '../../conformance/support/platform.ts'
import { newUserBody, type TestUser } from '../../conformance/support/person.ts'
import { options } from '../platform.ts'
import type { SeedIds } from './seed.ts'
import type { SharedPlatform } from './shared-process.ts'
import { sharedPlatformVariable } from './shared-start.ts'
import { test as base } from './test.ts'

const fetchShared = async <Body>(path = ''): Promise<Body> => {
  const response = await fetch(`${process.env[sharedPlatformVariable]}${path}`)
  return (await response.json()) as Body
}

const onShared = base
  .extend('shared', { scope: 'file' }, () => fetchShared<SharedPlatform>())
  .override('origin', { scope: 'file' }, ({ shared }) => shared.url)

/**
 * `test` of test.ts on the run's shared platform, whose relays send no heartbeats. Each file has its own organisation there; `api.admin` and
 * `user` are its first administrator.
 */
export const test = onShared
  .extend('tenant', { scope: 'file' }, ({ shared }) => newTenant(shared.url))
  .override('api', { scope: 'file' }, ({ tenant: { platform, person } }) => platform.as(person))
  .override('user', { scope: 'file' }, ({ tenant: { person } }) => person)

/**
 * The same as the administrator of the shared platform. Other files run at the same time: create uniquely named resources, remove them
 * again, and only read `seed`.
 */
export const testAsAdministrator = onShared
  .extend('seed', { scope: 'file' }, ({ shared: _started }) => fetchShared<SeedIds>('/seed'))
  .override('api', { scope: 'file' }, ({ shared }) => connect({ ...options, baseUrl: shared.url }))

async function newTenant(baseUrl: string): Promise<{ platform: Platform; person: TestUser }> {
  const platform = await connect({ ...options, baseUrl })
  const admin = await platform.admin
  const name = platform.newName()
  const { id: organisationId } = expectStatus(await admin.post('/api/v1/platform/organisations', { name }), 201)
  const body = newUserBody(['OrgAdmin'])
  const { id } = expectStatus(await admin.post('/api/v1/users', { ...body, organisationId }), 201)
  const tokens = await platform.signIn(body)
  const client = platform.anonymous.withToken(tokens.accessToken)
  return { platform, person: { id, organisationId, ...body, tokens, client } }
}
