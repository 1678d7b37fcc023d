import { randomUUID } from 'node:crypto'
import { expect } from 'vitest'
import { waitFor } from '../support/wait-for.ts'
import { type ApiResponse, expectStatus } from './support/answer.ts'
import type { Platform } from './support/platform.ts'
import { test } from './support/test.ts'

const path = '/api/v1/platform/identity/providers'
const callbackPath = '/api/v1/platform/identity/consent-callback'
const secret = 'a secret that is never returned'

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

const findListed = async (platform: Platform, id: string): Promise<any> => {
  const { items } = expectStatus(await (await platform.admin).get(path), 200)
  return items.find((each: any) => each.id === id)
}

async function startConsent(platform: Platform, id: string): Promise<{ url: URL; state: string }> {
  const url = new URL(expectStatus(await (await platform.admin).post(`${path}/${id}/consent`), 200).url)
  return { url, state: url.searchParams.get('state') ?? '' }
}

function redirectOf(response: ApiResponse): [string, Record<string, string>] {
  expectStatus(response, 302)
  const { pathname, searchParams } = new URL(response.headers.get('location') ?? '')
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
    async () => expect(await findListed(platform, provider.id)).toEqual(changed) ?? true,
  )
  expect((await admin.get(path)).text).not.toContain(secret)
  expectStatus(await admin.delete(`${path}/${provider.id}`), 204)
  expectStatus(await admin.delete(`${path}/${provider.id}`), 404, 'identity_provider_not_found')
  expect(await findListed(platform, provider.id)).toBe(undefined)
})

test('accepts each consent response once, by GET and by POST', async ({ platform, admin }) => {
  const { anonymous } = platform
  const { id, tenantId: tenant, consentRedirectUri } = await newProvider(platform, { ...newTenant(), enabled: true })
  const { url, state } = await startConsent(platform, id)
  expect([url.protocol, url.searchParams.get('redirect_uri')]).toEqual(['https:', consentRedirectUri])
  expect((await findListed(platform, id)).status).toBe('ConsentPending')
  const response = search({ state, tenant, admin_consent: 'True' })
  const granted = await anonymous.get(`${callbackPath}?${response}`)
  expect(redirectOf(granted)).toEqual(['/settings/identity', { provider: id, consent: 'granted' }])
  expect((await findListed(platform, id)).status).toBe('ConsentGranted')
  expectStatus(await anonymous.get(`${callbackPath}?${response}`), 401, 'unauthenticated')

  const { state: second } = await startConsent(platform, id)
  const body = search({ state: second, error: 'access_denied', error_description: '<script>' })
  const denied = await anonymous.send('POST', callbackPath, { body, headers: form })
  expect(redirectOf(denied)).toEqual(['/settings/identity', { provider: id, consent: 'denied' }])
  expectStatus(await anonymous.send('POST', callbackPath, { body, headers: form }), 401, 'unauthenticated')
  expectStatus(await admin.delete(`${path}/${id}`), 204)
})
