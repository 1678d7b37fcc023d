import { randomUUID } from 'node:crypto'
import type { Page } from 'playwright-core'
import { expect } from 'vitest'
import { answered } from '../conformance/support/answer.ts'
import type { Client } from '../conformance/support/client.ts'
import { axe } from '../support/portal/axe.ts'
import { reachingOut } from '../support/portal/layout.ts'
import { inThemes } from '../support/portal/shot.ts'
import { asAdministrator as test } from '../support/portal/shared.ts'

/** What an administrator does with identity providers. Signing in with them: provider-sign-in.test.ts. Consent: provider-consent.test.ts. */

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
  // The platform has some, of others.
  await page.route(`**${path}`, (route) => route.fulfill({ json: { items: [] } }))
  await page.reload()
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

/** Each at the place of the one before it, spelled otherwise. */
const twins = [
  [
    { type: 'OIDC', issuer: 'https://id.example.com/acme' },
    { Issuer: 'https://ID.example.com/acme/', 'Client id': 'other', 'Client secret': 'other' },
  ],
  [
    { type: 'CloudDirectory', tenantId: 'acme.example.com' },
    { Tenant: 'acme.example.com', 'Client id': 'other', 'Client secret': 'other' },
  ],
  [
    { type: 'OpenSourceIdp', baseUrl: 'https://sso.example.com', realm: 'acme' },
    { Address: 'https://sso.example.com/', Realm: 'acme', 'Client id': 'other', 'Client secret': 'other' },
  ],
  [
    { type: 'LDAP', url: 'ldaps://directory.example.com', bindDn: 'cn=a', bindPassword: 'a', userSearchBase: 'dc=a' },
    {
      Address: 'ldaps://Directory.example.com:636/',
      'Service account (DN)': 'cn=b',
      'Password of the service account': 'b',
      'Where people are (DN)': 'dc=b',
    },
  ],
] as const

test('one that is there already is not changed by adding it again, however its address is spelled', async ({
  api,
  open,
}) => {
  const admin = await api.admin
  const page = await open('/settings/identity')
  for (const [settings, typed] of twins) {
    const displayName = `First ${settings.type}`
    const client = settings.type === 'LDAP' ? {} : { clientId: 'platform', clientSecret: 'first' }
    const before = await configured(admin, { ...settings, ...client, displayName, enabled: false })
    await page.reload()
    await press(page, 'Add provider')
    await field(page, 'Type').selectOption(settings.type)
    for (const [label, text] of Object.entries(typed)) await field(page, label).fill(text)
    const asked = dialog(page, 'Add an identity provider')
    await asked.getByRole('button', { name: 'Add provider' }).click()
    await asked.getByText(`There is ${displayName} at this address already`).waitFor()
    expect(await stored(admin, before.id)).toEqual(before)
  }
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
  await inThemes(page, () => axe(page))
})

test('whoever does not administer the platform is told so, and offered nothing', async ({ api, open }) => {
  const { username, password } = await api.newPerson('Viewer')
  const page = await open('/settings/identity', { as: { username, password } })
  await page.getByText('You may not see this page').waitFor()
  expect(await page.getByRole('button', { name: 'Add provider' }).count()).toBe(0)
})
