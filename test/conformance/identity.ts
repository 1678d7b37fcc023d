import assert from 'node:assert/strict'
import { randomUUID } from 'node:crypto'
import { type Answer, answered, refusedFields } from './support/answer.ts'
import type { Journeys, Platform } from './support/platform.ts'
import { until } from './support/until.ts'

const path = '/api/v1/platform/identity/providers'
const back = '/api/v1/platform/identity/consent-callback'
const secret = 'a secret that nobody shall see again'

/** A tenant that nobody else has configured. Disabled: nobody is offered it at sign-in. */
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
  const provider = answered(await admin.post(path, request), 201)
  platform.leftovers.made(admin, `${path}/${provider.id}`)
  return provider
}

const listed = async (platform: Platform, id: string): Promise<any> => {
  const { items } = answered(await (await platform.admin).get(path), 200)
  return items.find((each: any) => each.id === id)
}

/** Asks for consent: the address that is to be opened, and its state. */
async function ask(platform: Platform, id: string): Promise<{ url: URL; state: string }> {
  const url = new URL(answered(await (await platform.admin).post(`${path}/${id}/consent`), 200).url)
  return { url, state: url.searchParams.get('state') ?? '' }
}

/** Where a browser is sent, with what the portal is told. */
function sentTo(answer: Answer): [string, Record<string, string>] {
  answered(answer, 302)
  const { pathname, searchParams } = new URL(answer.headers.get('location') ?? '')
  return [pathname.slice(-'/settings/identity'.length), Object.fromEntries(searchParams)]
}

const form = { 'content-type': 'application/x-www-form-urlencoded' }
const search = (parameters: Record<string, string>) => new URLSearchParams(parameters).toString()

export const identity: Journeys = {
  'an identity provider is added, listed, changed and removed; its secret never comes back': async (platform) => {
    const admin = await platform.admin
    const request = newTenant()
    const provider = await newProvider(platform, request)
    assert.match(provider.id, /^idp_/)
    assert.deepEqual([provider.type, provider.status, provider.enabled], ['CloudDirectory', 'Disabled', false])
    assert.ok(!('clientSecret' in provider))
    const { clientSecret: _, ...withoutSecret } = request
    const roleMappings = [{ group: 'operators', role: 'Operator' }]
    const changed = answered(await admin.post(path, { ...withoutSecret, roleMappings, defaultRole: 'Auditor' }), 201)
    assert.deepEqual([changed.id, changed.roleMappings, changed.defaultRole], [provider.id, roleMappings, 'Auditor'])
    assert.equal(changed.createdAt, provider.createdAt)
    await until(
      'the change is listed',
      async () => assert.deepEqual(await listed(platform, provider.id), changed) ?? true,
    )
    assert.ok(!(await admin.get(path)).text.includes(secret))
    answered(await admin.delete(`${path}/${provider.id}`), 204)
    answered(await admin.delete(`${path}/${provider.id}`), 404, 'identity_provider_not_found')
    assert.equal(await listed(platform, provider.id), undefined)
  },

  'what a type of provider needs is named where it is missing': async (platform) => {
    const admin = await platform.admin
    const needs: Record<string, string[]> = {
      CloudDirectory: ['/tenantId', '/clientId', '/clientSecret'],
      OIDC: ['/issuer', '/clientId', '/clientSecret'],
      OpenSourceIdp: ['/baseUrl', '/realm', '/clientId', '/clientSecret'],
      LDAP: ['/url', '/bindDn', '/userSearchBase', '/bindPassword'],
    }
    for (const [type, fields] of Object.entries(needs)) {
      const { details } = answered(await admin.post(path, { type }), 422, 'idp_config_invalid')
      assert.deepEqual(details.map((detail: any) => detail.path).toSorted(), fields.toSorted(), type)
    }
    assert.deepEqual(refusedFields(await admin.post(path, {})), ['body /type'])
    assert.deepEqual(refusedFields(await admin.post(path, { type: 'Kerberos' })), ['body /type'])
  },

  'addresses that are private, and ways without encryption, are refused': async (platform) => {
    const admin = await platform.admin
    const client = { clientId: 'platform', clientSecret: secret, enabled: false }
    const directory = { bindDn: 'cn=a', bindPassword: secret, userSearchBase: 'dc=a', enabled: false }
    for (const issuer of ['https://10.0.0.1', 'https://[::ffff:192.168.0.1]', 'https://169.254.169.254/latest']) {
      answered(await admin.post(path, { type: 'OIDC', issuer, ...client }), 422, 'url_not_allowed')
    }
    const open = [
      { type: 'OIDC', issuer: 'http://id.example.com', ...client },
      { type: 'LDAP', url: 'ldap://directory.example.com', ...directory },
      { type: 'LDAP', url: 'ldaps://directory.example.com', caCertificate: 'none', ...directory },
    ]
    for (const request of open) answered(await admin.post(path, request), 422, 'idp_config_invalid')
  },

  'consent is asked for at the provider, and its answer is heard once, by GET and by POST': async (platform) => {
    const { anonymous } = platform
    const { id, tenantId: tenant, consentRedirectUri } = await newProvider(platform, { ...newTenant(), enabled: true })
    const { url, state } = await ask(platform, id)
    assert.deepEqual([url.protocol, url.searchParams.get('redirect_uri')], ['https:', consentRedirectUri])
    assert.equal((await listed(platform, id)).status, 'ConsentPending')
    const answer = search({ state, tenant, admin_consent: 'True' })
    const granted = await anonymous.get(`${back}?${answer}`)
    assert.deepEqual(sentTo(granted), ['/settings/identity', { provider: id, consent: 'granted' }])
    assert.equal((await listed(platform, id)).status, 'ConsentGranted')
    answered(await anonymous.get(`${back}?${answer}`), 401, 'unauthenticated')

    const { state: second } = await ask(platform, id)
    const body = search({ state: second, error: 'access_denied', error_description: '<script>' })
    const denied = await anonymous.send('POST', back, { body, headers: form })
    assert.deepEqual(sentTo(denied), ['/settings/identity', { provider: id, consent: 'denied' }])
    answered(await anonymous.send('POST', back, { body, headers: form }), 401, 'unauthenticated')
    answered(await (await platform.admin).delete(`${path}/${id}`), 204)
  },

  'nobody is believed without the state of a request, and no other tenant with it': async (platform) => {
    const { anonymous } = platform
    const { id } = await newProvider(platform)
    for (const state of ['', 'x', 'x'.repeat(43)]) {
      answered(await anonymous.get(`${back}?${search({ state, admin_consent: 'True' })}`), 401, 'unauthenticated')
    }
    answered(await anonymous.get(back), 401, 'unauthenticated')
    answered(await anonymous.send('POST', back), 401, 'unauthenticated')
    const { state } = await ask(platform, id)
    const wrong = await anonymous.get(`${back}?${search({ state, tenant: 'other', admin_consent: 'True' })}`)
    assert.deepEqual(sentTo(wrong)[1], { provider: id, consent: 'error', error: 'tenant_mismatch' })
  },

  'a test tells how far the platform gets with a provider': async (platform) => {
    const { id } = await newProvider(platform, { ...newTenant(), authorityHost: 'https://login.invalid' })
    const { ok, checks } = answered(await (await platform.admin).post(`${path}/${id}/test`), 200)
    assert.equal(ok, false)
    assert.ok(checks.some((check: any) => !check.ok && check.message.length > 0))
  },

  'a provider that does not exist answers 404': async (platform) => {
    const admin = await platform.admin
    for (const id of ['nothing', 'idp_00000000000000000000000000']) {
      answered(await admin.delete(`${path}/${id}`), 404, 'identity_provider_not_found')
      answered(await admin.post(`${path}/${id}/test`), 404, 'identity_provider_not_found')
      answered(await admin.post(`${path}/${id}/consent`), 404, 'identity_provider_not_found')
    }
  },
}
