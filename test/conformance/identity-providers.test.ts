import { expect } from 'vitest'
import { test } from './support/test.ts'
import { randomUUID } from 'node:crypto'
import { type Answer, expectStatus, invalidFields } from './support/answer.ts'
import type { Platform } from './support/platform.ts'
import { waitFor } from '../support/wait-for.ts'

const path = '/api/v1/platform/identity/providers'
const back = '/api/v1/platform/identity/consent-callback'
const secret = 'a secret that nobody shall see again'

/** A provider for a unique tenant, disabled so that sign-in pages do not show it. */
const newTenant = () => ({
  type: 'CloudDirectory',
  tenantId: randomUUID(),
  clientId: 'platform',
  clientSecret: secret,
  displayName: 'conformance',
  enabled: false,
})

async function newProvider(platform: Platform, request: object = newTenant()): Promise<any> {
  const admin = await platform.admin
  const provider = expectStatus(await admin.post(path, request), 201)
  platform.removeLater(admin, `${path}/${provider.id}`)
  return provider
}

const listed = async (platform: Platform, id: string): Promise<any> => {
  const { items } = expectStatus(await (await platform.admin).get(path), 200)
  return items.find((each: any) => each.id === id)
}

/** Starts a consent and returns its URL and state. */
async function ask(platform: Platform, id: string): Promise<{ url: URL; state: string }> {
  const url = new URL(expectStatus(await (await platform.admin).post(`${path}/${id}/consent`), 200).url)
  return { url, state: url.searchParams.get('state') ?? '' }
}

/** The parameters of the redirect to the portal. */
function sentTo(answer: Answer): [string, Record<string, string>] {
  expectStatus(answer, 302)
  const { pathname, searchParams } = new URL(answer.headers.get('location') ?? '')
  return [pathname.slice(-'/settings/identity'.length), Object.fromEntries(searchParams)]
}

const form = { 'content-type': 'application/x-www-form-urlencoded' }
const search = (parameters: Record<string, string>) => new URLSearchParams(parameters).toString()

test('adds, lists, changes and removes a provider without returning its secret', async ({ platform, admin }) => {
  const request = newTenant()
  const provider = await newProvider(platform, request)
  expect(provider.id).toMatch(/^idp_/)
  expect([provider.type, provider.status, provider.enabled]).toEqual(['CloudDirectory', 'Disabled', false])
  expect(provider).not.toHaveProperty('clientSecret')
  const { clientSecret: _, ...withoutSecret } = request
  const roleMappings = [{ group: 'operators', role: 'Operator' }]
  const changed = expectStatus(await admin.post(path, { ...withoutSecret, roleMappings, defaultRole: 'Auditor' }), 201)
  expect([changed.id, changed.roleMappings, changed.defaultRole]).toEqual([provider.id, roleMappings, 'Auditor'])
  expect(changed.createdAt).toBe(provider.createdAt)
  await waitFor(
    'the change is listed',
    async () => expect(await listed(platform, provider.id)).toEqual(changed) ?? true,
  )
  expect((await admin.get(path)).text).not.toContain(secret)
  expectStatus(await admin.delete(`${path}/${provider.id}`), 204)
  expectStatus(await admin.delete(`${path}/${provider.id}`), 404, 'identity_provider_not_found')
  expect(await listed(platform, provider.id)).toBe(undefined)
})

test('names the missing fields of each provider type', async ({ admin }) => {
  const needs: Record<string, string[]> = {
    CloudDirectory: ['/tenantId', '/clientId', '/clientSecret'],
    OIDC: ['/issuer', '/clientId', '/clientSecret'],
    OpenSourceIdp: ['/baseUrl', '/realm', '/clientId', '/clientSecret'],
    LDAP: ['/url', '/bindDn', '/userSearchBase', '/bindPassword'],
  }
  for (const [type, fields] of Object.entries(needs)) {
    const { details } = expectStatus(await admin.post(path, { type }), 422, 'idp_config_invalid')
    expect(details.map((detail: any) => detail.path).toSorted(), type).toEqual(fields.toSorted())
  }
  expect(invalidFields(await admin.post(path, {}))).toEqual(['body /type'])
  expect(invalidFields(await admin.post(path, { type: 'Kerberos' }))).toEqual(['body /type'])
})

test('rejects private addresses and unencrypted connections', async ({ admin }) => {
  const client = { clientId: 'platform', clientSecret: secret, enabled: false }
  const directory = { bindDn: 'cn=a', bindPassword: secret, userSearchBase: 'dc=a', enabled: false }
  for (const issuer of ['https://10.0.0.1', 'https://[::ffff:192.168.0.1]', 'https://169.254.169.254/latest']) {
    expectStatus(await admin.post(path, { type: 'OIDC', issuer, ...client }), 422, 'url_not_allowed')
  }
  const open = [
    { type: 'OIDC', issuer: 'http://id.example.com', ...client },
    { type: 'LDAP', url: 'ldap://directory.example.com', ...directory },
    { type: 'LDAP', url: 'ldaps://directory.example.com', caCertificate: 'none', ...directory },
  ]
  for (const request of open) expectStatus(await admin.post(path, request), 422, 'idp_config_invalid')
})

test('accepts each consent response once, by GET and by POST', async ({ platform, admin }) => {
  const { anonymous } = platform
  const { id, tenantId: tenant, consentRedirectUri } = await newProvider(platform, { ...newTenant(), enabled: true })
  const { url, state } = await ask(platform, id)
  expect([url.protocol, url.searchParams.get('redirect_uri')]).toEqual(['https:', consentRedirectUri])
  expect((await listed(platform, id)).status).toBe('ConsentPending')
  const answer = search({ state, tenant, admin_consent: 'True' })
  const granted = await anonymous.get(`${back}?${answer}`)
  expect(sentTo(granted)).toEqual(['/settings/identity', { provider: id, consent: 'granted' }])
  expect((await listed(platform, id)).status).toBe('ConsentGranted')
  expectStatus(await anonymous.get(`${back}?${answer}`), 401, 'unauthenticated')

  const { state: second } = await ask(platform, id)
  const body = search({ state: second, error: 'access_denied', error_description: '<script>' })
  const denied = await anonymous.send('POST', back, { body, headers: form })
  expect(sentTo(denied)).toEqual(['/settings/identity', { provider: id, consent: 'denied' }])
  expectStatus(await anonymous.send('POST', back, { body, headers: form }), 401, 'unauthenticated')
  expectStatus(await admin.delete(`${path}/${id}`), 204)
})

test('rejects consent responses with an unknown state or another tenant', async ({ platform }) => {
  const { anonymous } = platform
  const { id } = await newProvider(platform)
  for (const state of ['', 'x', 'x'.repeat(43)]) {
    expectStatus(await anonymous.get(`${back}?${search({ state, admin_consent: 'True' })}`), 401, 'unauthenticated')
  }
  expectStatus(await anonymous.get(back), 401, 'unauthenticated')
  expectStatus(await anonymous.send('POST', back), 401, 'unauthenticated')
  const { state } = await ask(platform, id)
  const wrong = await anonymous.get(`${back}?${search({ state, tenant: 'other', admin_consent: 'True' })}`)
  expect(sentTo(wrong)[1]).toEqual({ provider: id, consent: 'error', error: 'tenant_mismatch' })
})

test('reports the failed checks of a provider test', async ({ platform, admin }) => {
  const { id } = await newProvider(platform, { ...newTenant(), authorityHost: 'https://login.invalid' })
  const { ok, checks } = expectStatus(await admin.post(`${path}/${id}/test`), 200)
  expect(ok).toBe(false)
  expect(checks.some((check: any) => !check.ok && check.message.length > 0)).toBe(true)
})

test('returns 404 for every operation on an unknown provider', async ({ admin }) => {
  for (const id of ['nothing', 'idp_00000000000000000000000000']) {
    expectStatus(await admin.delete(`${path}/${id}`), 404, 'identity_provider_not_found')
    expectStatus(await admin.post(`${path}/${id}/test`), 404, 'identity_provider_not_found')
    expectStatus(await admin.post(`${path}/${id}/consent`), 404, 'identity_provider_not_found')
  }
})
