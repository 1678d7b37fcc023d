import { permissionsOf } from '@platform/contract/permission'
import { newId } from '@platform/core/id'
import * as Identity from '@platform/core/identity-providers/manage'
import { configure, providerLimit } from '@platform/core/identity-providers/configure'
import { allProviders, enabledProviders, findProvider } from '@platform/core/identity-providers/provider'
import { type ProviderRecord } from '@platform/core/identity-providers/record'
import { beforeAll, expect, test } from 'vitest'
import { newCaller, type SignedInUser, setUpPlatform, requestErrorCode, errorCodeOf } from '../../support/fixtures.ts'
import { countStoreCalls } from '../../support/store-calls.ts'
import { ldap, oidc, secretInUse, secretNames } from '../support/identity.ts'

const admin = () => newCaller(undefined, 'PlatformAdmin')

let platform: SignedInUser
beforeAll(async () => {
  platform = await setUpPlatform()
})

const found = async (id: string): Promise<ProviderRecord> => {
  const row = await findProvider(id)
  if (row === undefined) throw new Error('There is no such provider.')
  return row
}

const request = (index: number) => ({ ...oidc, issuer: `https://id-${index}.example.com` })
const mapped = (role: 'Viewer' | 'Operator' | 'PlatformAdmin') => ({ ...oidc, roleMappings: [{ group: 'g', role }] })

test('of two that remove a provider at once one does', async () => {
  const caller = await admin()
  const { id } = await configure(caller, oidc)
  const outcomes = await Promise.all([1, 2, 3].map(() => errorCodeOf(Identity.remove(caller, id))))
  expect(outcomes.filter((outcome) => outcome === 'no error')).toHaveLength(1)
  await configure(caller, oidc)
  expect((await Identity.list(caller)).items).toHaveLength(1)
})

test('eight that configure one provider at once make one, with the secret of one of them and no other left', async () => {
  const caller = await admin()
  const secrets = Array.from({ length: 8 }, (_, index) => `secret ${index}`)
  const made = await Promise.all(secrets.map((clientSecret) => configure(caller, { ...oidc, clientSecret })))
  const ids = new Set(made.map(({ id }) => id))
  expect(ids.size).toBe(1)
  const [id = ''] = ids
  expect(secrets).toContain(await secretInUse(id))
  expect(await secretNames(id)).toEqual([(await found(id)).secretName])
  expect((await found(id)).revision).toBe(8)
})

test(`an organisation has at most ${providerLimit} providers, and may change them then`, async () => {
  const caller = await admin()
  const before = (await allProviders()).length
  for (let first = 0; first < providerLimit; first += 10) {
    await Promise.all(Array.from({ length: 10 }, (_, index) => configure(caller, request(first + index))))
  }
  expect(await errorCodeOf(configure(caller, request(providerLimit)))).toBe('limit_reached')
  const asked = 'POST /api/v1/platform/identity/providers'
  const answer = await requestErrorCode('identity', asked, [caller, 'PlatformAdmin'], request(providerLimit))
  expect(answer).toBe('limit_reached')
  await configure(caller, { ...request(0), displayName: 'still there' })
  const { items } = await Identity.list(caller)
  expect(items).toHaveLength(providerLimit)
  expect(await allProviders()).toHaveLength(before + providerLimit)
  await Identity.remove(caller, items[0]?.id ?? '')
  await configure(caller, request(providerLimit))
})

test('one call tells whom people can sign in with, by type', async () => {
  const caller = await admin()
  const on = await configure(caller, oidc)
  const off = await configure(caller, { ...ldap, enabled: false })
  let enabled: ProviderRecord[] = []
  expect(await countStoreCalls(async () => (enabled = await enabledProviders()))).toBe(1)
  const ids = enabled.map(({ id }) => id)
  expect(ids).toContain(on.id)
  expect(ids).not.toContain(off.id)
  expect((await enabledProviders('LDAP')).map(({ type }) => type)).not.toContain('OIDC')
  expect((await findProvider(off.id))?.isEnabled).toBe(false)
  expect((await Identity.list(caller)).items.map(({ status }) => status)).toEqual(['Configured', 'Disabled'])
})

test('providers of another organisation are not found', async () => {
  const { id } = await configure(await admin(), oidc)
  const other = await admin()
  expect((await Identity.list(other)).items).toEqual([])
  expect(await errorCodeOf(Identity.remove(other, id))).toBe('identity_provider_not_found')
  expect(await errorCodeOf(Identity.test(other, id))).toBe('identity_provider_not_found')
  for (const strange of ['', 'nothing', newId('idp'), newId('site'), '../x']) {
    expect(await errorCodeOf(Identity.remove(other, strange))).toBe('identity_provider_not_found')
  }
  expect((await configure(other, oidc)).id).not.toBe(id)
})

test('nobody hands out by a provider what is not the own, or what the organisation cannot have', async () => {
  const narrow = { ...(await admin()), permissions: new Set(['platform:admin'] as const) }
  expect(await errorCodeOf(configure(narrow, oidc))).toBe('role_not_grantable')
  const asViewer = { ...(await admin()), permissions: new Set(permissionsOf(['Viewer']).concat('platform:admin')) }
  await configure(asViewer, mapped('Viewer'))
  expect(await errorCodeOf(configure(asViewer, mapped('Operator')))).toBe('role_not_grantable')
  // An organisation that does not run the platform has no platform administrators, whatever its row says.
  expect(await errorCodeOf(configure(await admin(), mapped('PlatformAdmin')))).toBe('role_not_grantable')
  const { roleMappings, id } = await configure(platform.caller, mapped('PlatformAdmin'))
  expect(roleMappings).toEqual([{ group: 'g', role: 'PlatformAdmin' }])
  await Identity.remove(platform.caller, id)
})

test('who has lost the permission since the token was issued is refused', async () => {
  const organisationId = newId('org')
  const viewer = await newCaller(organisationId, 'Viewer')
  expect(await errorCodeOf(configure({ ...viewer, permissions: new Set(['platform:admin'] as const) }, oidc))).toBe(
    'forbidden',
  )
})
