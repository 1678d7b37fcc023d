import { randomUUID } from 'node:crypto'
import type { Page } from 'playwright-core'
import { expect } from 'vitest'
import { expectStatus } from '../conformance/support/answer.ts'
import type { Client } from '../conformance/support/client.ts'
import { button, dialog, field, heading, row } from '../support/portal/locators.ts'
import { testAsAdministrator as test } from '../support/portal/test.ts'

/** Administration of identity providers; provider-sign-in.long.test.ts tests how users sign in. */

const path = '/api/v1/platform/identity/providers'
const click = (page: Page, name: string) => button(page, name).click()

/** A provider whose tenant no other test uses. */
const cloudDirectory = (displayName: string, fields: object = {}) => ({
  type: 'CloudDirectory',
  tenantId: randomUUID(),
  clientId: 'platform',
  clientSecret: 'client secret',
  displayName,
  ...fields,
})
const create = async (admin: Client, provider: object) => expectStatus(await admin.post(path, provider), 201)
const readProvider = async (admin: Client, id: string) =>
  expectStatus(await admin.get(path), 200).items.find((each: { id: string }) => each.id === id)

test('each provider type requires its own fields', async ({ api, open }) => {
  await api.admin
  const page = await open('/settings/identity')
  // Other tests have created providers.
  await page.route(`**${path}`, (route) => route.fulfill({ json: { items: [] } }))
  await page.reload()
  await page.getByText('No identity providers yet').waitFor()
  await click(page, 'Add provider')
  const form = dialog(page, 'Add an identity provider')
  const requiredFields = {
    OIDC: ['Issuer', 'Client id', 'Client secret'],
    CloudDirectory: ['Tenant', 'Client id', 'Client secret'],
    OpenSourceIdp: ['Address', 'Realm', 'Client id', 'Client secret'],
    LDAP: ['Address', 'Bind DN', 'Bind password', 'User search base (DN)'],
  }
  for (const [type, labels] of Object.entries(requiredFields)) {
    await field(page, 'Type').selectOption(type)
    await field(page, labels[0] ?? '').waitFor()
    for (const label of labels) expect(await field(page, label).getAttribute('required')).not.toBeNull()
    expect([type, await form.locator('input:required').count()]).toEqual([type, labels.length])
  }
  await button(form, 'Add provider').click()
  await expect.poll(() => field(page, 'Address').getAttribute('aria-invalid')).toBe('true')
})

test('a rejected field is marked and keeps the form', async ({ open }) => {
  const page = await open('/settings/identity', { allow: [/^response 422 POST/] })
  await click(page, 'Add provider')
  await field(page, 'Issuer').fill('http://id.example.com')
  for (const label of ['Client id', 'Client secret']) await field(page, label).fill('secret')
  const form = dialog(page, 'Add an identity provider')
  await button(form, 'Add provider').click()
  await expect.poll(() => field(page, 'Issuer').getAttribute('aria-invalid')).toBe('true')
  expect(await form.getByRole('alert').count()).toBe(0)
  expect(await field(page, 'Client secret').inputValue()).toBe('secret')
})

test('a change keeps all other settings, the secret included', async ({ api, open }) => {
  const admin = await api.admin
  const provider = await create(admin, {
    ...cloudDirectory('Tenant of Acme'),
    authorityHost: 'https://login.microsoftonline.us',
    scopes: ['openid', 'profile', 'groups'],
    usernameClaim: 'upn',
    emailClaim: 'mail',
    groupsClaim: 'roles',
    enabled: false,
    roleMappings: [
      { group: 'a', role: 'Operator' },
      { group: 'b', role: 'Auditor' },
    ],
    defaultRole: 'ClusterAdmin',
  })
  const page = await open(`/settings/identity?provider=${provider.id}`)
  await field(page, 'Name (optional)').fill('Tenant of Acme, renamed')
  await click(page, 'Remove mapping 1')
  await click(page, 'Add mapping')
  const addedMapping = page.getByRole('group', { name: 'Mapping 2' })
  await addedMapping.getByLabel('Group').fill('c')
  await addedMapping.getByLabel('Role').selectOption('OrgAdmin')
  await click(page, 'Save changes')
  await expect.poll(async () => (await readProvider(admin, provider.id)).displayName).toBe('Tenant of Acme, renamed')
  const { updatedAt: _, ...changedProvider } = await readProvider(admin, provider.id)
  expect(changedProvider).toEqual({
    ...provider,
    updatedAt: undefined,
    displayName: 'Tenant of Acme, renamed',
    roleMappings: [
      { group: 'b', role: 'Auditor' },
      { group: 'c', role: 'OrgAdmin' },
    ],
  })
  // The change succeeds only if the secret is still stored.
  await click(page, 'Save changes')
  await page.getByText('was changed').first().waitFor()
  expect(await page.content()).not.toContain('client secret')
})

test('does not overwrite a provider that exists', async ({ api, open }) => {
  const admin = await api.admin
  const provider = await create(admin, cloudDirectory('First', { tenantId: 'acme.example.com' }))
  const page = await open('/settings/identity')
  await click(page, 'Add provider')
  await field(page, 'Type').selectOption('CloudDirectory')
  for (const label of ['Client id', 'Client secret']) await field(page, label).fill('other')
  await field(page, 'Tenant').fill('acme.example.com')
  const form = dialog(page, 'Add an identity provider')
  await button(form, 'Add provider').click()
  await form.getByText('First already uses this address').waitFor()
  expect(await readProvider(admin, provider.id)).toEqual(provider)
})

test('a provider opens and closes while the public address is unsaved', async ({ api, open }) => {
  const { displayName } = await create(await api.admin, cloudDirectory('Beside the address', { enabled: false }))
  const page = await open('/settings/identity')
  const address = page.getByRole('textbox', { name: 'Public address' })
  await address.fill('https://new.example.com')
  await click(page, displayName)
  await dialog(page, displayName).waitFor()
  await page.keyboard.press('Escape')
  await dialog(page).waitFor({ state: 'detached' })
  expect(await address.inputValue()).toBe('https://new.example.com')
})

test('removing a provider needs confirmation', async ({ api, open }) => {
  const admin = await api.admin
  const { id } = await create(admin, cloudDirectory('Short-lived'))
  const page = await open('/settings/identity')
  await click(page, 'Short-lived')
  await click(page, 'Remove provider')
  const confirmation = dialog(page, 'Remove Short-lived?')
  await confirmation.getByText('Its users remain but can no longer sign in').waitFor()
  await button(confirmation, 'Remove provider').click()
  await confirmation.waitFor({ state: 'detached' })
  await row(page, 'Short-lived').waitFor({ state: 'detached' })
  await heading(page, 'Identity providers').waitFor()
  expect(await readProvider(admin, id)).toBeUndefined()
})

test('shows whether the tenant granted or denied consent', async ({ api, origin, open }) => {
  const { id, tenantId, displayName } = await create(await api.admin, cloudDirectory('Cloud of Acme'))
  const page = await open(`/settings/identity?provider=${id}`, {
    allow: [/^external GET https:\/\/(login\.microsoftonline\.com|platform\.example\.com)\//],
  })
  // Acts as the tenant. The redirects go to the public URL, which the test replaces with the origin of this platform.
  let verdict = { admin_consent: 'True' }
  await page.route('https://login.microsoftonline.com/**', async (route) => {
    const request = new URL(route.request().url())
    expect([request.pathname, request.searchParams.get('client_id')]).toEqual([
      `/${tenantId}/v2.0/adminconsent`,
      'platform',
    ])
    const redirectUrl = new URL(request.searchParams.get('redirect_uri') ?? '')
    const state = request.searchParams.get('state') ?? ''
    redirectUrl.search = new URLSearchParams({ ...verdict, tenant: tenantId, state }).toString()
    const response = await fetch(`${origin}${redirectUrl.pathname}${redirectUrl.search}`, { redirect: 'manual' })
    const settings = new URL(response.headers.get('location') ?? '')
    expect(settings.origin).toBe('https://platform.example.com')
    await route.fulfill({ status: 302, headers: { location: `${origin}${settings.pathname}${settings.search}` } })
  })
  await click(page, 'Request consent')
  await page.getByText(`${displayName} granted consent. Users can sign in with it.`).waitFor()
  expect(await row(page, displayName).innerText()).toContain('Consent granted')
  await button(page.getByRole('main'), 'Dismiss').click()
  await expect.poll(() => page.url()).toBe(`${origin}/settings/identity`)

  verdict = { admin_consent: 'False' }
  await click(page, displayName)
  await click(page, 'Request consent')
  await page.getByRole('alert').getByText(`${displayName} denied consent.`).waitFor()
  expect(await row(page, displayName).innerText()).toContain('Consent denied')
})

test('does not trust consent results of the address or URLs without TLS', async ({ api, origin, open }) => {
  const { id } = await create(await api.admin, cloudDirectory('Without consent'))
  const page = await open(`/settings/identity?provider=${id}&consent=granted`)
  const alert = (text: string) => page.getByRole('alert').getByText(text).waitFor()
  await alert('this result is outdated')
  await page.goto(`/settings/identity?provider=${id}&consent=error&error=tenant_mismatch`)
  await alert('came from another tenant')
  await page.goto(`/settings/identity?consent=error&error=Call%20%2B49%20123`)
  await alert('The consent request failed.')
  expect(await page.getByRole('main').innerText()).not.toContain('+49')

  await page.goto(`/settings/identity?provider=${id}`)
  for (const url of ['javascript:alert(__xss=1)', 'http://id.example.com/consent']) {
    await page.route('**/consent', (route) => route.fulfill({ json: { url } }))
    await click(page, 'Request consent')
    await alert('does not use https')
    expect(page.url()).toContain(origin)
  }
})
