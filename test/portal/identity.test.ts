import { randomUUID } from 'node:crypto'
import type { Page } from 'playwright-core'
import { expect } from 'vitest'
import { answered } from '../../conformance/answer.ts'
import type { Client } from '../../conformance/client.ts'
import { axe } from '../support/portal/axe.ts'
import { reachingOut } from '../support/portal/layout.ts'
import { inBothThemes } from '../support/portal/shot.ts'
import { test } from '../support/portal/test.ts'

/** What an administrator does with identity providers. Signing in with them: provider-sign-in.test.ts. */

const path = '/api/v1/platform/identity/providers'
const field = (page: Page, label: string) => page.getByLabel(label, { exact: true })
const press = (page: Page, name: string) => page.getByRole('button', { name, exact: true }).click()
/** What is told in passing is a dialog as well. */
const dialog = (page: Page, name: string) =>
  page.getByRole('dialog', { name }).filter({ hasNot: page.getByRole('button', { name: 'Dismiss', exact: true }) })
const row = (page: Page, name: string) => page.getByRole('row').filter({ hasText: name })

/** A provider that nobody else has: of a tenant of its own. */
const cloud = (displayName: string, more: object = {}) => ({
  type: 'CloudDirectory',
  tenantId: randomUUID(),
  clientId: 'platform',
  clientSecret: 'a secret that nobody shall see again',
  displayName,
  ...more,
})
const configured = async (admin: Client, provider: object) => answered(await admin.post(path, provider), 201)
const stored = async (admin: Client, id: string) =>
  answered(await admin.get(path), 200).items.find((each: { id: string }) => each.id === id)

test('where there are none, the page says what they are for; each type asks for what it needs', async ({
  api,
  open,
}) => {
  await api.admin
  const page = await open('/settings/identity')
  await page.getByText('No identity providers yet').waitFor()
  await press(page, 'Add provider')
  const needs = {
    OIDC: ['Issuer', 'Client id', 'Client secret'],
    CloudDirectory: ['Tenant', 'Client id', 'Client secret'],
    OpenSourceIdp: ['Address', 'Realm', 'Client id', 'Client secret'],
    LDAP: ['Address', 'Service account (DN)', 'Password of the service account', 'Where people are (DN)'],
  }
  for (const [type, labels] of Object.entries(needs)) {
    await field(page, 'Type').selectOption(type)
    await field(page, labels[0] ?? '').waitFor()
    const required = await dialog(page, 'Add an identity provider').locator('input:required').count()
    for (const label of labels) expect(await field(page, label).getAttribute('required')).not.toBeNull()
    expect([type, required]).toEqual([type, labels.length])
    await axe(page)
  }
  await dialog(page, 'Add an identity provider').getByRole('button', { name: 'Add provider' }).click()
  await expect.poll(() => field(page, 'Address').getAttribute('aria-invalid')).toBe('true')
})

test('what the platform does not take stands beside its field, with the trace', async ({ open }) => {
  const page = await open('/settings/identity', { allow: [/^answer 422 POST/] })
  await press(page, 'Add provider')
  await field(page, 'Issuer').fill('http://id.example.com')
  await field(page, 'Client id').fill('platform')
  await field(page, 'Client secret').fill('secret')
  const asked = dialog(page, 'Add an identity provider')
  await asked.getByRole('button', { name: 'Add provider' }).click()
  await expect.poll(() => field(page, 'Issuer').getAttribute('aria-invalid')).toBe('true')
  expect(await asked.getByRole('alert').innerText()).toMatch(/Trace id\s+[0-9a-f]{32}/)
  expect(await field(page, 'Client secret').inputValue()).toBe('secret')
})

test('a change sends all that is known again: what one does not touch stays, the secret too', async ({ api, open }) => {
  const admin = await api.admin
  const before = await configured(admin, {
    ...cloud('Tenant of Acme'),
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
  const page = await open(`/settings/identity?provider=${before.id}`)
  await field(page, 'Name (optional)').fill('Tenant of Acme, renamed')
  await press(page, 'Remove mapping 1')
  await press(page, 'Add mapping')
  const added = page.getByRole('group', { name: 'Mapping 2' })
  await added.getByLabel('Group').fill('c')
  await added.getByLabel('Role').selectOption('OrgAdmin')
  await press(page, 'Save changes')
  await expect.poll(async () => (await stored(admin, before.id)).displayName).toBe('Tenant of Acme, renamed')
  const { updatedAt: _, ...after } = await stored(admin, before.id)
  expect(after).toEqual({
    ...before,
    updatedAt: undefined,
    displayName: 'Tenant of Acme, renamed',
    roleMappings: [
      { group: 'b', role: 'Auditor' },
      { group: 'c', role: 'OrgAdmin' },
    ],
  })
  // A request without the secret would be refused, had the platform lost it.
  await press(page, 'Save changes')
  await page.getByText('was changed').first().waitFor()
  expect(await page.content()).not.toContain('a secret that nobody shall see again')
})

test('one that is there already is not changed by adding it again', async ({ api, open }) => {
  const admin = await api.admin
  const before = await configured(admin, { ...cloud('First'), roleMappings: [{ group: 'a', role: 'Operator' }] })
  const page = await open('/settings/identity')
  await press(page, 'Add provider')
  await field(page, 'Type').selectOption('CloudDirectory')
  await field(page, 'Tenant').fill(before.tenantId)
  await field(page, 'Client id').fill('other')
  await field(page, 'Client secret').fill('other secret')
  const asked = dialog(page, 'Add an identity provider')
  await asked.getByRole('button', { name: 'Add provider' }).click()
  await asked.getByText('There is First at this address already').waitFor()
  expect(await stored(admin, before.id)).toEqual(before)
})

test('consent is asked for at the provider, and what came of it is told until it is dismissed', async ({
  api,
  origin,
  open,
}) => {
  const admin = await api.admin
  const { id, tenantId, displayName } = await configured(admin, cloud('Cloud of Acme'))
  const page = await open(`/settings/identity?provider=${id}`, {
    allow: [/^elsewhere GET https:\/\/(login\.microsoftonline\.com|platform\.example\.com)\//],
  })
  // The operator of the tenant, and the way back over the platform's public address, to this platform.
  let verdict = { admin_consent: 'True' }
  await page.route('https://login.microsoftonline.com/**', async (route) => {
    const asked = new URL(route.request().url())
    expect([asked.pathname, asked.searchParams.get('client_id')]).toEqual([
      `/${tenantId}/v2.0/adminconsent`,
      'platform',
    ])
    const back = new URL(asked.searchParams.get('redirect_uri') ?? '')
    back.search = new URLSearchParams({
      ...verdict,
      tenant: tenantId,
      state: asked.searchParams.get('state') ?? '',
    }).toString()
    const answer = await fetch(`${origin}${back.pathname}${back.search}`, { redirect: 'manual' })
    const settings = new URL(answer.headers.get('location') ?? '')
    expect(settings.origin).toBe('https://platform.example.com')
    await route.fulfill({ status: 302, headers: { location: `${origin}${settings.pathname}${settings.search}` } })
  })
  await press(page, 'Ask for consent')
  await page.getByText(`${displayName} has given consent: people can sign in with it.`).waitFor()
  expect(await row(page, displayName).innerText()).toContain('Consent granted')
  await inBothThemes(page, () => axe(page))
  await page.getByRole('main').getByRole('button', { name: 'Dismiss' }).click()
  await expect.poll(() => page.url()).toBe(`${origin}/settings/identity`)

  verdict = { admin_consent: 'False' }
  await press(page, displayName)
  await press(page, 'Ask for consent')
  await page
    .getByRole('alert')
    .filter({ hasText: `${displayName} has denied consent.` })
    .waitFor()
  expect(await row(page, displayName).innerText()).toContain('Consent denied')
})

test('an address that tells of an answer is believed only where the platform knows of it', async ({ api, open }) => {
  const { id } = await configured(await api.admin, cloud('Never asked'))
  const page = await open(`/settings/identity?provider=${id}&consent=granted`)
  await page.getByRole('alert').filter({ hasText: 'the platform knows of no such answer' }).waitFor()
  await page.goto(`/settings/identity?provider=${id}&consent=error&error=tenant_mismatch`)
  await page.getByRole('alert').filter({ hasText: 'Another tenant has answered' }).waitFor()
  await page.goto(`/settings/identity?consent=error&error=Call%20%2B49%20123`)
  await page.getByRole('alert').filter({ hasText: 'Consent was asked for in vain.' }).waitFor()
  expect(await page.getByRole('main').innerText()).not.toContain('+49')
})

test('a provider is removed after it was said what becomes of its users', async ({ api, open }) => {
  const admin = await api.admin
  const { id } = await configured(admin, cloud('Short-lived'))
  const page = await open('/settings/identity')
  await press(page, 'Short-lived')
  await press(page, 'Remove provider')
  const asked = dialog(page, 'Remove Short-lived?')
  await asked.getByText('Its users stay, and cannot sign in any more').waitFor()
  await axe(page)
  await asked.getByRole('button', { name: 'Remove provider' }).click()
  await asked.waitFor({ state: 'detached' })
  await row(page, 'Short-lived').waitFor({ state: 'detached' })
  await page.getByRole('heading', { level: 1, name: 'Identity providers' }).waitFor()
  expect(await stored(admin, id)).toBeUndefined()
})

test('a narrow screen shows the list and a provider without scrolling sideways', async ({ api, open }) => {
  const { id } = await configured(
    await api.admin,
    cloud('Narrow', { roleMappings: [{ group: 'a', role: 'Operator' }] }),
  )
  const page = await open('/settings/identity', { width: 360 })
  await row(page, 'Narrow').waitFor()
  expect(await reachingOut(page)).toEqual([])
  await page.goto(`/settings/identity?provider=${id}`)
  await dialog(page, 'Narrow').waitFor()
  await page.getByText('More settings').click()
  expect(await reachingOut(page)).toEqual([])
  await inBothThemes(page, () => axe(page))
})

test('whoever does not administer the platform is told so, and offered nothing', async ({ api, open }) => {
  const { username, password } = await api.newPerson('Viewer')
  const page = await open('/settings/identity', {
    as: { username, password },
    allow: [/^answer 403 GET \/api\/v1\/platform\/identity\/providers$/],
  })
  await expect.poll(() => page.getByRole('alert').innerText()).toMatch(/Trace id/)
  expect(await page.getByRole('button', { name: 'Add provider' }).count()).toBe(0)
})
