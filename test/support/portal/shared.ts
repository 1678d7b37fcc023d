import { answered } from '../../conformance/support/answer.ts'
import { connect, type Platform } from '../../conformance/support/platform.ts'
import { newUserBody, type Person } from '../../conformance/support/person.ts'
import { options } from '../platform.ts'
import type { Places } from './seed.ts'
import type { SharedPlatform } from './shared-process.ts'
import { sharedPlatformAt } from './shared-start.ts'
import { test as base } from './test.ts'

const asked = async <Answer>(path = ''): Promise<Answer> => {
  const response = await fetch(`${process.env[sharedPlatformAt]}${path}`)
  return (await response.json()) as Answer
}

const onShared = base
  .extend('shared', { scope: 'file' }, () => asked<SharedPlatform>())
  .override('origin', { scope: 'file' }, ({ shared }) => shared.url)

/**
 * As `test` of test.ts, on the one platform of the whole run, whose relays do not beat (`lasting`). Each file has an organisation of its
 * own there, in which `api.admin` and `user` are its first administrator: for whatever neither needs nor changes more than that.
 */
export const test = onShared
  .extend('tenant', { scope: 'file' }, ({ shared }) => newTenant(shared.url))
  .override('api', { scope: 'file' }, ({ tenant: { platform, person } }) => platform.as(person))
  .override('user', { scope: 'file' }, ({ tenant: { person } }) => person)

/**
 * The same, as the administrator of that platform, in its own organisation: others are there at the same time. A file may add what has a
 * name of its own and remove it again. `seed` is what all may look at and nobody changes.
 */
export const asAdministrator = onShared
  .extend('seed', { scope: 'file' }, ({ shared: _isThere }) => asked<Places>('/seed'))
  .override('api', { scope: 'file' }, ({ shared }) => connect({ ...options, baseUrl: shared.url }))

/** An organisation that nobody else has, and its first administrator. */
async function newTenant(baseUrl: string): Promise<{ platform: Platform; person: Person }> {
  const platform = await connect({ ...options, baseUrl })
  const admin = await platform.admin
  const name = platform.newName()
  const { id: organisationId } = answered(await admin.post('/api/v1/platform/organisations', { name }), 201)
  const body = newUserBody(['OrgAdmin'])
  const { id } = answered(await admin.post('/api/v1/users', { ...body, organisationId }), 201)
  const tokens = await platform.signIn(body)
  const client = platform.anonymous.withToken(tokens.accessToken)
  return { platform, person: { id, organisationId, ...body, tokens, client } }
}
