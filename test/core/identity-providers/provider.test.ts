import { DynamoDBClient, ScanCommand } from '@aws-sdk/client-dynamodb'
import { type ProviderRequest } from '@platform/contract/identity'
import { config } from '@platform/core/config'
import * as Identity from '@platform/core/identity-providers/manage'
import { configure } from '@platform/core/identity-providers/configure'
import { findProvider, issuerOf, secretOf } from '@platform/core/identity-providers/provider'
import { type ProviderRecord } from '@platform/core/identity-providers/record'
import { deleteSecret, readSecret } from '@platform/core/aws/secrets'
import { parseRecord } from '@platform/core/outbox/record'
import { outbox } from '@platform/core/db/keys'
import { query } from '@platform/core/db/table'
import { beforeAll, expect, test } from 'vitest'
import { administrator, newCaller, setUpPlatform, errorCodeOf } from '../../support/fixtures.ts'
import { cloud, everyType, ldap, oidc, openSource, secretInUse, secretNames } from '../support/identity.ts'

const admin = () => newCaller(undefined, 'PlatformAdmin')

beforeAll(async () => {
  await setUpPlatform()
})

const found = async (id: string): Promise<ProviderRecord> => {
  const row = await findProvider(id)
  if (row === undefined) throw new Error('There is no such provider.')
  return row
}

test.each(Object.entries(everyType))(
  'a provider of type %s is added with no more than its type needs',
  async (type, request) => {
    const caller = await admin()
    const provider = await configure(caller, request)
    expect(provider).toMatchObject({
      type,
      status: 'Configured',
      enabled: true,
      defaultRole: 'Viewer',
      roleMappings: [],
    })
    expect(provider.displayName).not.toBe('')
    expect((await Identity.list(caller)).items).toEqual([provider])
  },
)

test('what nobody says has a sensible value', async () => {
  const caller = await admin()
  const claims = {
    scopes: ['openid', 'profile', 'email'],
    usernameClaim: 'preferred_username',
    emailClaim: 'email',
    groupsClaim: 'groups',
  }
  const portal = administrator.publicUrl
  const acme = await configure(caller, oidc)
  expect(acme).toMatchObject({ ...claims, displayName: 'id.example.com' })
  expect(acme.redirectUri).toBe(`${portal}/api/v1/auth/oidc/${acme.id}/callback`)
  expect(acme.consentRedirectUri).toBe(`${portal}/api/v1/platform/identity/consent-callback`)
  const tenant = await configure(caller, cloud)
  expect(tenant).toMatchObject({
    ...claims,
    authorityHost: 'https://login.microsoftonline.com',
    displayName: cloud.tenantId,
  })
  const realm = await configure(caller, { ...openSource, scopes: ['groups'] })
  expect(realm).toMatchObject({ ...claims, scopes: ['openid', 'groups'], displayName: 'acme (sso.example.com)' })
  const directory = await configure(caller, ldap)
  expect(directory).toMatchObject({ userLoginAttribute: 'uid', groupMemberAttribute: 'member', startTls: false })
  expect(directory).not.toHaveProperty('redirectUri')
  expect(directory).not.toHaveProperty('scopes')
})

test('issuers are those of their types', async () => {
  const caller = await admin()
  const issuer = async (request: ProviderRequest) => issuerOf(await found((await configure(caller, request)).id))
  expect(await issuer(oidc)).toBe(oidc.issuer)
  expect(await issuer(cloud)).toBe(`https://login.microsoftonline.com/${cloud.tenantId}/v2.0`)
  expect(await issuer({ ...openSource, baseUrl: 'https://sso.example.com/auth/' })).toBe(
    'https://sso.example.com/auth/realms/acme',
  )
  expect(await issuer(ldap)).toBe('')
})

test('fields of other types are taken, and left out', async () => {
  const caller = await admin()
  const provider = await configure(caller, { ...oidc, tenantId: 'acme', url: 'ldaps://elsewhere.example.com' })
  expect(provider).not.toHaveProperty('tenantId')
  expect(provider).not.toHaveProperty('url')
  expect(await configure(caller, { ...ldap, tenantId: 'a', clientId: 'b', clientSecret: 'c' })).not.toHaveProperty(
    'clientId',
  )
})

test('a provider of the same type and place is changed: all is as the request says, and times tell', async () => {
  const caller = await admin()
  const before = await configure(caller, { ...oidc, displayName: 'Acme', usernameClaim: 'upn', enabled: false })
  const after = await configure(caller, { ...oidc, issuer: 'https://ID.example.com:443/acme/', clientId: 'other' })
  expect(after).toMatchObject({ id: before.id, createdAt: before.createdAt, clientId: 'other', enabled: true })
  expect(after).toMatchObject({ displayName: 'id.example.com', usernameClaim: 'preferred_username' })
  expect((await Identity.list(caller)).items).toEqual([after])
})

test.each([
  [oidc, { issuer: 'https://id.example.com/other' }],
  [cloud, { tenantId: '00000000-0000-4000-8000-000000000000' }],
  [cloud, { authorityHost: 'https://login.example.com' }],
  [openSource, { realm: 'other' }],
  [openSource, { baseUrl: 'https://other.example.com' }],
  [ldap, { url: 'ldaps://other.example.com' }],
  [ldap, { url: 'ldaps://directory.example.com:1636' }],
])('a provider of %o with %o is another one, and gets no secret of the first', async (request, change) => {
  const caller = await admin()
  const first = await configure(caller, request)
  const { clientSecret: _, bindPassword: __, ...place }: any = { ...request, ...change }
  expect(await errorCodeOf(configure(caller, place))).toBe('idp_config_invalid')
  expect((await configure(caller, { ...request, ...change })).id).not.toBe(first.id)
  expect((await Identity.list(caller)).items).toHaveLength(2)
})

test('two spellings of one directory are one provider', async () => {
  const caller = await admin()
  const urls = ['ldaps://directory.example.com', 'ldaps://DIRECTORY.example.com:636', 'ldaps://directory.example.com/']
  const ids = new Set<string>()
  for (const url of urls) ids.add((await configure(caller, { ...ldap, url })).id)
  expect(ids.size).toBe(1)
})

test('a secret that is left out stays; a new one takes its place, and nothing is left of the old one', async () => {
  const caller = await admin()
  const { id } = await configure(caller, oidc)
  const first = await secretNames(id)
  const { clientSecret: _, ...withoutSecret } = oidc
  await configure(caller, { ...withoutSecret, displayName: 'Acme' })
  expect(await secretInUse(id)).toBe('first secret')
  expect(await secretNames(id)).toEqual(first)
  await configure(caller, { ...oidc, clientSecret: 'second secret' })
  expect(await secretInUse(id)).toBe('second secret')
  const second = await secretNames(id)
  expect(second).toEqual([(await found(id)).secretName])
  expect(second).not.toEqual(first)
})

test('whoever has read a provider before its secret was changed gets the new one', async () => {
  const caller = await admin()
  const { id } = await configure(caller, oidc)
  const stale = await found(id)
  await configure(caller, { ...oidc, clientSecret: 'second secret' })
  expect(await secretOf(stale)).toEqual({ clientSecret: 'second secret' })
  await Identity.remove(caller, id)
  expect(await secretOf(stale)).toEqual({})
})

test('a secret that was lost has to be given again', async () => {
  const caller = await admin()
  const { id } = await configure(caller, oidc)
  await deleteSecret((await found(id)).secretName)
  const { clientSecret: _, ...withoutSecret } = oidc
  expect(await errorCodeOf(configure(caller, withoutSecret))).toBe('idp_config_invalid')
  await configure(caller, oidc)
  expect(await secretInUse(id)).toBe('first secret')
})

test('secrets stand in Secrets Manager and nowhere else: not in answers, the table or the audit trail', async () => {
  const caller = await admin()
  const [clientSecret, bindPassword] = ['s3cret-of-a-client', 's3cret-of-a-directory']
  const answers = [
    await configure(caller, { ...oidc, clientSecret }),
    await configure(caller, { ...ldap, bindPassword }),
    await Identity.list(caller),
  ]
  const { Items } = await new DynamoDBClient().send(new ScanCommand({ TableName: config.PLAT_TABLE }))
  for (const secret of [clientSecret, bindPassword]) {
    expect(JSON.stringify(answers)).not.toContain(secret)
    expect(JSON.stringify(Items)).not.toContain(secret)
  }
  expect(JSON.stringify(Items)).toContain('directory.example.com')
})

test('what is done is told, and on record with those whom people are believed from', async () => {
  const caller = await admin()
  const { id } = await configure(caller, { ...oidc, displayName: 'Acme' })
  await configure(caller, { ...oidc, clientSecret: 'second', enabled: false })
  await Identity.remove(caller, id)
  const { items } = await query({ pk: outbox(caller.organisationId, '').pk })
  const told = items
    .map(parseRecord)
    .map(({ audit, events }) => [audit?.action, audit?.detail, events.map(({ name }) => name)])
  expect(told).toEqual([
    [
      'identity_provider.configure',
      'added OIDC Acme (https://id.example.com/acme); roles Viewer',
      ['identity.provider_configured'],
    ],
    [
      'identity_provider.configure',
      'changed OIDC id.example.com (https://id.example.com/acme); disabled; new secret; roles Viewer',
      ['identity.provider_configured'],
    ],
    ['identity_provider.delete', 'OIDC id.example.com', []],
  ])
})

test('a provider that is removed is gone with its secret; added again it has its old id', async () => {
  const caller = await admin()
  const { id } = await configure(caller, oidc)
  await Identity.remove(caller, id)
  expect(await findProvider(id)).toBeUndefined()
  expect(await secretNames(id)).toEqual([])
  expect(await errorCodeOf(Identity.remove(caller, id))).toBe('identity_provider_not_found')
  expect((await configure(caller, oidc)).id).toBe(id)
})

test('what is stored of a secret is JSON under a name below the prefix', async () => {
  const { id } = await configure(await admin(), ldap)
  const { secretName } = await found(id)
  expect(secretName.startsWith(`${config.PLAT_SECRET_IDENTITY_PREFIX}/${id}/`)).toBe(true)
  expect(JSON.parse((await readSecret(secretName)) ?? '')).toEqual({ bindPassword: 'first secret' })
})
