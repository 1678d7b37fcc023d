import { DynamoDBClient, ScanCommand } from '@aws-sdk/client-dynamodb'
import type { ProviderRequest } from '@platform/contract/identity'
import { permissionsOf } from '@platform/contract/permission'
import { deleteSecret, readSecret } from '@platform/core/aws/secrets'
import { sweep } from '@platform/core/background/sweep'
import { config } from '@platform/core/config'
import * as keys from '@platform/core/db/keys'
import { get, query } from '@platform/core/db/table'
import { newId } from '@platform/core/id'
import { configure, providerLimit } from '@platform/core/identity-providers/configure'
import * as Providers from '@platform/core/identity-providers/manage'
import { isOrphanedSecret } from '@platform/core/identity-providers/orphaned-secrets'
import { enabledProviders, findProvider, issuerOf, secretOf } from '@platform/core/identity-providers/provider'
import type { ProviderRecord } from '@platform/core/identity-providers/record'
import { beforeAll, expect, test } from 'vitest'
import { advanceClock } from '../../support/clock.ts'
import {
  administrator,
  errorCodeOf,
  errorOf,
  expectError,
  newCaller,
  requestErrorCode,
  setUpPlatform,
  type SignedInUser,
} from '../../support/fixtures.ts'
import { countStoreCalls, crashAtCall } from '../../support/store-calls.ts'
import { runBefore } from '../support/interleaving.ts'
import {
  cloud,
  onSecretCall,
  requestByType,
  ldap,
  oidc,
  openSource,
  secretInUse,
  listSecretNames,
} from '../support/identity.ts'
import { readPendingRecords } from '../support/outbox.ts'

const admin = () => newCaller(undefined, 'PlatformAdmin')

let platform: SignedInUser
beforeAll(async () => {
  platform = await setUpPlatform()
})

async function recordOf(id: string): Promise<ProviderRecord> {
  const record = await findProvider(id)
  if (record === undefined) throw new Error('The provider does not exist.')
  return record
}
const { clientSecret: _, ...withoutSecret } = oidc

test.each(Object.entries(requestByType))(
  'adds a provider of type %s with only its required settings',
  async (type, request) => {
    const caller = await admin()
    const provider = await configure(caller, request)
    const defaults = { status: 'Configured', enabled: true, defaultRole: 'Viewer', roleMappings: [] }
    expect(provider).toMatchObject({ type, ...defaults })
    expect(provider.displayName).not.toBe('')
    expect((await Providers.list(caller)).items).toEqual([provider])
  },
)

test('applies the defaults of each type', async () => {
  const caller = await admin()
  const claims = { usernameClaim: 'preferred_username', emailClaim: 'email', groupsClaim: 'groups' }
  const portal = administrator.publicUrl
  const acme = await configure(caller, oidc)
  expect(acme).toMatchObject({ ...claims, displayName: 'id.example.com' })
  // The default scopes depend on the provider.
  expect(acme).not.toHaveProperty('scopes')
  expect(acme.redirectUri).toBe(`${portal}/api/v1/auth/oidc/${acme.id}/callback`)
  expect(acme.consentRedirectUri).toBe(`${portal}/api/v1/platform/identity/consent-callback`)
  const authorityHost = 'https://login.microsoftonline.com'
  expect(await configure(caller, cloud)).toMatchObject({ ...claims, authorityHost, displayName: cloud.tenantId })
  const realm = await configure(caller, { ...openSource, scopes: ['groups'] })
  expect(realm).toMatchObject({ ...claims, scopes: ['openid', 'groups'], displayName: 'acme (sso.example.com)' })
  const directory = await configure(caller, ldap)
  expect(directory).toMatchObject({
    userLoginAttribute: 'uid',
    groupMemberAttribute: 'member',
    nestedGroups: 'none',
    startTls: false,
  })
  expect(directory).not.toHaveProperty('redirectUri')
  expect(directory).not.toHaveProperty('scopes')
})

test.each<[ProviderRequest, string]>([
  [oidc, oidc.issuer],
  [cloud, `https://login.microsoftonline.com/${cloud.tenantId}/v2.0`],
  [{ ...openSource, baseUrl: 'https://sso.example.com/auth/' }, 'https://sso.example.com/auth/realms/acme'],
  [ldap, ''],
])('derives the issuer of %o', async (request, issuer) => {
  expect(issuerOf(await recordOf((await configure(await admin(), request)).id))).toBe(issuer)
})

test('ignores settings of other types', async () => {
  const caller = await admin()
  const provider = await configure(caller, { ...oidc, tenantId: 'acme', url: 'ldaps://elsewhere.example.com' })
  expect(provider).not.toHaveProperty('tenantId')
  expect(provider).not.toHaveProperty('url')
  const directory = await configure(caller, { ...ldap, tenantId: 'a', clientId: 'b', clientSecret: 'c' })
  expect(directory).not.toHaveProperty('clientId')
})

test('replaces all settings of a provider with the same type and location', async () => {
  const caller = await admin()
  const provider = await configure(caller, { ...oidc, displayName: 'Acme', usernameClaim: 'upn', enabled: false })
  const reconfigured = await configure(caller, {
    ...oidc,
    issuer: 'https://ID.example.com:443/acme/',
    clientId: 'other',
  })
  expect(reconfigured).toMatchObject({
    id: provider.id,
    createdAt: provider.createdAt,
    clientId: 'other',
    enabled: true,
  })
  expect(reconfigured).toMatchObject({ displayName: 'id.example.com', usernameClaim: 'preferred_username' })
  expect((await Providers.list(caller)).items).toEqual([reconfigured])
})

test.each([
  [oidc, { issuer: 'https://id.example.com/other' }],
  [cloud, { tenantId: '00000000-0000-4000-8000-000000000000' }],
  [cloud, { authorityHost: 'https://login.example.com' }],
  [openSource, { realm: 'other' }],
  [openSource, { baseUrl: 'https://other.example.com' }],
  [ldap, { url: 'ldaps://other.example.com' }],
  [ldap, { url: 'ldaps://directory.example.com:1636' }],
])('treats %o with %o as another provider with a separate secret', async (request, change) => {
  const caller = await admin()
  const firstProvider = await configure(caller, request)
  const { clientSecret: _c, bindPassword: _b, ...other }: any = { ...request, ...change }
  await expectError(configure(caller, other), 'idp_config_invalid')
  expect((await configure(caller, { ...request, ...change })).id).not.toBe(firstProvider.id)
  expect((await Providers.list(caller)).items).toHaveLength(2)
})

test('treats spellings of one directory URL as one provider', async () => {
  const caller = await admin()
  const urls = ['ldaps://directory.example.com', 'ldaps://DIRECTORY.example.com:636', 'ldaps://directory.example.com/']
  const ids = new Set<string>()
  for (const url of urls) ids.add((await configure(caller, { ...ldap, url })).id)
  expect(ids.size).toBe(1)
})

test('keeps an omitted secret, replaces a new one and deletes the old one', async () => {
  const caller = await admin()
  const { id } = await configure(caller, oidc)
  const firstNames = await listSecretNames(id)
  const recordBefore = await recordOf(id)
  await configure(caller, { ...withoutSecret, displayName: 'Acme' })
  expect([await secretInUse(id), await listSecretNames(id)]).toEqual(['first secret', firstNames])
  await configure(caller, { ...oidc, clientSecret: 'second secret' })
  expect(await secretInUse(id)).toBe('second secret')
  expect(await listSecretNames(id)).toEqual([(await recordOf(id)).secretName])
  // A reader with an outdated record gets the new secret.
  expect(await secretOf(recordBefore)).toEqual({ clientSecret: 'second secret' })
  await Providers.remove(caller, id)
  expect(await secretOf(recordBefore)).toEqual({})
})

test('requires the secret again after it was lost', async () => {
  const caller = await admin()
  const { id } = await configure(caller, oidc)
  await deleteSecret((await recordOf(id)).secretName)
  await expectError(configure(caller, withoutSecret), 'idp_config_invalid')
  await configure(caller, oidc)
  expect(await secretInUse(id)).toBe('first secret')
})

test('stores secrets only in Secrets Manager', async () => {
  const caller = await admin()
  const [clientSecret, bindPassword] = ['s3cret-of-a-client', 's3cret-of-a-directory']
  const directory = await configure(caller, { ...ldap, bindPassword })
  const responses = [directory, await configure(caller, { ...oidc, clientSecret }), await Providers.list(caller)]
  const { Items } = await new DynamoDBClient().send(new ScanCommand({ TableName: config.PLAT_TABLE }))
  for (const secret of [clientSecret, bindPassword]) {
    expect(JSON.stringify(responses)).not.toContain(secret)
    expect(JSON.stringify(Items)).not.toContain(secret)
  }
  expect(JSON.stringify(Items)).toContain('directory.example.com')
  const { secretName } = await recordOf(directory.id)
  expect(secretName.startsWith(`${config.PLAT_SECRET_IDENTITY_PREFIX}/${directory.id}/`)).toBe(true)
  expect(JSON.parse((await readSecret(secretName)) ?? '')).toEqual({ bindPassword })
})

test('audits and announces changes of providers', async () => {
  const caller = await admin()
  const { id } = await configure(caller, { ...oidc, displayName: 'Acme' })
  await configure(caller, { ...oidc, clientSecret: 'second', enabled: false })
  await Providers.remove(caller, id)
  const records = (await readPendingRecords(caller.organisationId)).map(({ audit, events }) => [
    `${audit?.action} ${audit?.detail}`,
    ...events.map(({ name }) => name),
  ])
  const changeDetail = 'changed OIDC id.example.com (https://id.example.com/acme); disabled; new secret; roles Viewer'
  expect(records).toEqual([
    [
      'identity_provider.configure added OIDC Acme (https://id.example.com/acme); roles Viewer',
      'identity.provider_configured',
    ],
    [`identity_provider.configure ${changeDetail}`, 'identity.provider_configured'],
    ['identity_provider.delete OIDC id.example.com'],
  ])
})

test('removes a provider with its secret and gives it the same id when added again', async () => {
  const caller = await admin()
  const { id } = await configure(caller, oidc)
  await Providers.remove(caller, id)
  expect(await findProvider(id)).toBeUndefined()
  expect(await listSecretNames(id)).toEqual([])
  await expectError(Providers.remove(caller, id), 'identity_provider_not_found')
  expect((await configure(caller, oidc)).id).toBe(id)
})

test('limits the providers of an organisation but not changes of them', async () => {
  const caller = await admin()
  const request = (index: number) => ({ ...oidc, issuer: `https://id-${index}.example.com` })
  for (let first = 0; first < providerLimit; first += 10) {
    await Promise.all(Array.from({ length: 10 }, (_, index) => configure(caller, request(first + index))))
  }
  const limitError = await errorOf(configure(caller, request(providerLimit)))
  expect(limitError).toMatchObject({
    message: expect.stringMatching('at most 50 identity providers'),
    extra: { limit: providerLimit, used: providerLimit },
  })
  const endpoint = 'POST /api/v1/platform/identity/providers'
  const requester = [caller, 'PlatformAdmin'] as const
  expect(await requestErrorCode('identity', endpoint, requester, request(providerLimit))).toBe('limit_reached')
  await configure(caller, { ...request(0), displayName: 'changed' })
  const { items } = await Providers.list(caller)
  expect(items).toHaveLength(providerLimit)
  await Providers.remove(caller, items[0]?.id ?? '')
  await configure(caller, request(providerLimit))
})

test('lists enabled providers of one type with one call', async () => {
  const caller = await admin()
  const enabledProvider = await configure(caller, oidc)
  const disabledProvider = await configure(caller, { ...ldap, enabled: false })
  expect(await countStoreCalls(() => enabledProviders())).toBe(1)
  const ids = (await enabledProviders()).map(({ id }) => id)
  expect([ids.includes(enabledProvider.id), ids.includes(disabledProvider.id)]).toEqual([true, false])
  expect((await enabledProviders('LDAP')).map(({ type }) => type)).not.toContain('OIDC')
  expect((await findProvider(disabledProvider.id))?.isEnabled).toBe(false)
  expect((await Providers.list(caller)).items.map(({ status }) => status)).toEqual(['Configured', 'Disabled'])
})

test('does not find providers of another organisation', async () => {
  const { id } = await configure(await admin(), oidc)
  const otherAdmin = await admin()
  expect((await Providers.list(otherAdmin)).items).toEqual([])
  await expectError(Providers.test(otherAdmin, id), 'identity_provider_not_found')
  for (const invalidId of [id, '', 'nothing', newId('idp'), newId('site'), '../x']) {
    await expectError(Providers.remove(otherAdmin, invalidId), 'identity_provider_not_found')
  }
  expect((await configure(otherAdmin, oidc)).id).not.toBe(id)
})

test('rejects role mappings beyond the rights of the caller or the organisation', async () => {
  const mappedRequest = (role: 'Viewer' | 'Operator' | 'PlatformAdmin') => ({
    ...oidc,
    roleMappings: [{ group: 'g', role }],
  })
  const restrictedCaller = { ...(await admin()), permissions: new Set(['platform:admin'] as const) }
  await expectError(configure(restrictedCaller, oidc), 'role_not_grantable')
  const viewer = { ...(await admin()), permissions: new Set(permissionsOf(['Viewer']).concat('platform:admin')) }
  await configure(viewer, mappedRequest('Viewer'))
  await expectError(configure(viewer, mappedRequest('Operator')), 'role_not_grantable')
  // Only the platform organisation has platform administrators.
  await expectError(configure(await admin(), mappedRequest('PlatformAdmin')), 'role_not_grantable')
  const { roleMappings, id } = await configure(platform.caller, mappedRequest('PlatformAdmin'))
  expect(roleMappings).toEqual([{ group: 'g', role: 'PlatformAdmin' }])
  await Providers.remove(platform.caller, id)
})

test('rejects a caller whose permission was revoked after the token was issued', async () => {
  const revokedCaller = {
    ...(await newCaller(newId('org'), 'Viewer')),
    permissions: new Set(['platform:admin'] as const),
  }
  await expectError(configure(revokedCaller, oidc), 'forbidden')
})

async function configureProvider() {
  const caller = await admin()
  return { caller, ...(await configure(caller, oidc)) }
}
const changeRequest = { ...oidc, clientSecret: 'second secret' }

async function orphanMarkers() {
  const shards = Array.from({ length: keys.dueShardCount }, (_, shard) =>
    query({ index: 'due', pk: keys.duePartition(shard) }),
  )
  return (await Promise.all(shards)).flatMap(({ items }) => items).filter(isOrphanedSecret)
}

async function expectNoOrphans(id: string): Promise<void> {
  advanceClock(11 * 60_000)
  await sweep()
  const record = await findProvider(id)
  expect(await listSecretNames(id)).toEqual(record === undefined ? [] : [record.secretName])
  expect(await orphanMarkers()).toEqual([])
}

const readProviderCount = async ({ organisationId }: { organisationId: string }) =>
  (await get(keys.identityProviderCount(organisationId)))?.['count']

test.each(['before', 'after'] as const)(
  'adds a provider completely or not at all if a crash comes %s any call',
  async (when) => {
    let crashes = 0
    for (let [nth, isCrashed] = [1, true]; isCrashed; nth++) {
      const caller = await admin()
      isCrashed = await crashAtCall(nth, when, () => configure(caller, oidc), onSecretCall)
      const [storedProvider] = (await Providers.list(caller)).items
      const { id } = storedProvider ?? (await configure(caller, oidc))
      expect(await secretInUse(id)).toBe('first secret')
      await expectNoOrphans(id)
      expect(await readProviderCount(caller)).toBe(1)
      crashes += Number(isCrashed)
    }
    expect(crashes).toBeGreaterThanOrEqual(5)
  },
)

test.each(['before', 'after'] as const)('keeps a usable secret if a change crashes %s any call', async (when) => {
  const secrets = new Set<string | undefined>()
  for (let [nth, isCrashed] = [1, true]; isCrashed; nth++) {
    const { caller, id } = await configureProvider()
    isCrashed = await crashAtCall(nth, when, () => configure(caller, changeRequest), onSecretCall)
    const secret = await secretInUse(id)
    secrets.add(secret)
    await expectNoOrphans(id)
    expect(await secretInUse(id)).toBe(secret)
  }
  expect(secrets).toEqual(new Set(['first secret', 'second secret']))
})

test.each(['before', 'after'] as const)(
  'removes a provider with its secret if a crash comes %s any call',
  async (when) => {
    const outcomes = new Set<boolean>()
    for (let [nth, isCrashed] = [1, true]; isCrashed; nth++) {
      const { caller, id } = await configureProvider()
      isCrashed = await crashAtCall(nth, when, () => Providers.remove(caller, id), onSecretCall)
      const isStored = (await findProvider(id)) !== undefined
      expect(await secretInUse(id)).toBe(isStored ? 'first secret' : undefined)
      outcomes.add(isStored)
      await expectNoOrphans(id)
      expect(await readProviderCount(caller)).toBe(Number(isStored))
    }
    expect(outcomes.size).toBe(2)
  },
)

test('does not sweep a new secret', async () => {
  const { caller, id } = await configureProvider()
  await crashAtCall(5, 'before', () => configure(caller, changeRequest), onSecretCall)
  expect(await listSecretNames(id)).toHaveLength(2)
  await sweep()
  expect(await listSecretNames(id)).toHaveLength(2)
  await expectNoOrphans(id)
})

test('rejects a change whose new secret was swept', async () => {
  const { caller, id } = await configureProvider()
  const sweepLater = async () => {
    advanceClock(11 * 60_000)
    await sweep()
  }
  runBefore(/TransactWrite/, sweepLater, 2)
  await expectError(configure(caller, changeRequest), 'conflict')
  expect(await secretInUse(id)).toBe('first secret')
  await expectNoOrphans(id)
})

test('removes a provider once among concurrent requests', async () => {
  const { caller, id } = await configureProvider()
  const outcomes = await Promise.all([1, 2, 3].map(() => errorCodeOf(Providers.remove(caller, id))))
  expect(outcomes.filter((outcome) => outcome === 'no error')).toHaveLength(1)
  await configure(caller, oidc)
  expect((await Providers.list(caller)).items).toHaveLength(1)
})

test('stores one provider with one secret among concurrent changes', async () => {
  const caller = await admin()
  const secrets = Array.from({ length: 8 }, (_, index) => `secret ${index}`)
  const providers = await Promise.all(secrets.map((clientSecret) => configure(caller, { ...oidc, clientSecret })))
  const [id = '', ...others] = new Set(providers.map((provider) => provider.id))
  expect(others).toEqual([])
  expect(secrets).toContain(await secretInUse(id))
  const record = await findProvider(id)
  expect(await listSecretNames(id)).toEqual([record?.secretName])
  expect(record?.revision).toBe(8)
})
