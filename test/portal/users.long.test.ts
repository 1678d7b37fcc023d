import type { Locator, Page } from 'playwright-core'
import { expect } from 'vitest'
import { expectStatus } from '../conformance/support/answer.ts'
import { jobFor, submitBatch } from '../conformance/support/batch.ts'
import type { Platform } from '../conformance/support/platform.ts'
import { healthyRelay } from '../support/portal/fleet.ts'
import { button, dialog, field, heading, link, mainLink, row } from '../support/portal/locators.ts'
import { waitForPage } from '../support/portal/open.ts'
import { type Open, testAsAdministrator as test, test as inTenant } from '../support/portal/test.ts'

const password = 'correct horse battery'

async function openAction(page: Page, username: string, action: string): Promise<Locator> {
  await button(page, `Actions for ${username}`).click()
  await page.getByRole('menuitem', { name: action }).click()
  await dialog(page).waitFor()
  return dialog(page)
}

async function fillUser(form: Locator, username: string): Promise<void> {
  await field(form, 'User name').fill(username)
  await field(form, 'E-mail').fill(`${username.replaceAll(' ', '')}@example.com`)
  await field(form, 'Password').fill(password)
}

const expectSessionEnded = async (api: Platform, { refreshToken }: { refreshToken: string }) =>
  expectStatus(await api.anonymous.post('/api/v1/auth/refresh', { refreshToken }), 401)

test('a user is created with described roles; errors are shown at their fields', async ({ open, api }) => {
  const page = await open('/settings/users', { allow: [/^response 40[09] POST \/api\/v1\/users$/] })
  await row(page, 'ada').getByText('You').waitFor()
  await button(page, 'Create user').click()
  const form = dialog(page)
  await fillUser(form, 'ada')
  await button(form, 'Create user').click()
  await form.getByText('Choose at least one role.').waitFor()
  await form.getByText('Views clusters, jobs and modules, and reads the audit trail.').waitFor()
  await form.getByRole('checkbox', { name: /^Auditor/ }).check()
  await form.getByRole('checkbox', { name: /^Operator/ }).check()
  await button(form, 'Create user').click()
  await form.getByText('Another user of the platform has this name.').waitFor()
  await form.getByText('Details', { exact: true }).click()
  await button(form, 'Copy trace id').waitFor()
  expect(await field(form, 'E-mail').inputValue()).toBe('ada@example.com')
  await field(form, 'User name').fill('no spaces here')
  await button(form, 'Create user').click()
  await expect.poll(() => field(form, 'User name').getAttribute('aria-invalid')).toBe('true')
  await fillUser(form, 'grace')
  await button(form, 'Create user').click()
  await row(page, 'grace').getByText('Operator, Auditor').waitFor()
  await api.signIn({ username: 'grace', password })
})

test('e-mail, roles and password are edited in a form with its own URL', async ({ open, api }) => {
  const user = await api.newUser('Operator')
  const page = await open('/settings/users')
  await openAction(page, user.username, 'Edit')
  await page.waitForURL(`**/settings/users?user=${user.id}`)
  await page.reload()
  const form = dialog(page)
  await form.getByLabel('E-mail').fill('new@example.com')
  await form.getByRole('checkbox', { name: /^Operator/ }).uncheck()
  await form.getByText('Choose at least one role.').waitFor()
  await form.getByRole('checkbox', { name: /^Viewer/ }).check()
  await form.getByLabel('New password').fill('a longer sentence')
  await form.getByRole('button', { name: 'Save' }).click()
  await row(page, 'new@example.com').getByText('Viewer').waitFor()
  await api.signIn({ username: user.username, password: 'a longer sentence' })
  await expectSessionEnded(api, user.tokens)
})

test('an edit keeps roles that were changed at the same time; reopening shows them', async ({ open, api }) => {
  const { id, username } = await api.newUser('Operator')
  const admin = await api.admin
  const page = await open('/settings/users')
  const form = await openAction(page, username, 'Edit')
  await form.getByLabel('E-mail').fill('kept@example.com')
  expectStatus(await admin.patch(`/api/v1/users/${id}`, { roles: ['Viewer'] }), 200)
  await form.getByRole('button', { name: 'Save' }).click()
  await form.waitFor({ state: 'hidden' })
  const user = expectStatus(await admin.get(`/api/v1/users/${id}`), 200)
  expect(user).toMatchObject({ email: 'kept@example.com', roles: ['Viewer'] })

  expectStatus(await admin.patch(`/api/v1/users/${id}`, { roles: ['Operator'] }), 200)
  const reopenedDialog = await openAction(page, username, 'Edit')
  expect(await reopenedDialog.getByRole('checkbox', { name: /^Operator/ }).isChecked()).toBe(true)
})

test('arrow keys move between rows without opening menus', async ({ open, api }) => {
  for (let count = 0; count < 2; count++) await api.newUser('Viewer')
  const page = await open('/settings/users')
  const buttons = button(page, /^Actions for /)
  await buttons.first().press('ArrowDown')
  await expect.poll(() => buttons.nth(1).evaluate((element: any) => element.matches(':focus'))).toBe(true)
  expect(await page.getByRole('menu').count()).toBe(0)
})

test('sessions, API tokens and users are removed after confirmation', async ({ open, api }) => {
  const user = await api.newUser('Operator')
  const { token } = expectStatus(await user.client.post('/api/v1/users/me/tokens', { name: 'nightly' }), 201)
  const page = await open('/settings/users')
  const confirm = async (action: string) => {
    const confirmation = await openAction(page, user.username, action)
    await button(confirmation, action).click()
    await confirmation.waitFor({ state: 'hidden' })
  }
  await confirm('End sessions')
  await expectSessionEnded(api, user.tokens)
  expectStatus(await api.anonymous.withToken(token).get('/api/v1/auth/me'), 200)
  await confirm('Revoke API tokens')
  expectStatus(await api.anonymous.withToken(token).get('/api/v1/auth/me'), 401)
  await openAction(page, user.username, 'Remove')
  await page.keyboard.press('Escape')
  await row(page, user.username).waitFor()
  await confirm('Remove')
  await row(page, user.username).waitFor({ state: 'detached' })
})

test('an organisation is created and gets its first administrator once', async ({ open, api }) => {
  const page = await open('/settings/organisations', { allow: [/^response 409 POST /] })
  await row(page, 'Test Platform').getByText('Platform', { exact: true }).waitFor()
  const create = async (name: string) => {
    await button(page, 'Create organisation').click()
    await field(dialog(page), 'Name').fill(name)
    await button(dialog(page), 'Create organisation').click()
  }
  await create('Acme East')
  const form = dialog(page, 'First administrator of Acme East')
  await fillUser(form, 'east.admin')
  await button(form, 'Create user').click()
  await form.waitFor({ state: 'hidden' })
  const { accessToken } = await api.signIn({ username: 'east.admin', password })
  const { roles } = expectStatus(await api.anonymous.withToken(accessToken).get('/api/v1/auth/me'), 200)
  expect(roles).toEqual(['OrgAdmin'])

  await openAction(page, 'Acme East', 'Add first administrator')
  await fillUser(form, 'east.other')
  await button(form, 'Create user').click()
  await form.getByText('The organisation has an administrator').waitFor()
  await button(form, 'Cancel').click()
  await button(page, 'Discard changes').click()
  await create('acme east')
  await page.getByText('Another organisation has this name.').waitFor()
})

test.for([
  ['Viewer', '/clusters/register', 'clusters:write'],
  ['Viewer', '/settings/audit', 'audit:read'],
  ['Viewer', '/settings/identity', 'platform:admin'],
  ['Viewer', '/settings/webhooks', 'users:admin'],
  ['OrgAdmin', '/settings/updates', 'platform:admin'],
  ['Operator', '/settings/users', 'users:admin'],
  ['Operator', '/settings/organisations', 'platform:admin'],
] as const)('%s cannot open %s', async ([role, path, permission], { open, api }) => {
  const page = await open(path, { as: await api.newUser(role) })
  await page.getByText('Access denied').waitFor()
  await page.getByText(permission).waitFor()
  expect(await page.getByRole('main').getByRole('button').count()).toBe(0)
  expect(await mainLink(page, await heading(page, /./).innerText()).count()).toBe(0)
})

test('shows a viewer no controls that change data', async ({ open, api, seed: _seeded }) => {
  const { clusterId } = await healthyRelay(api)
  const jobId = await api.submit(clusterId)
  const { batchId } = await submitBatch(api, { jobs: [jobFor(clusterId)] })
  await api.newSite()
  const page = await open('/clusters', { as: await api.newUser('Viewer') })
  await button(page, 'Sites').click()
  await dialog(page).getByRole('listitem').first().waitFor()
  expect(await dialog(page).getByRole('button').allInnerTexts()).toEqual([''])
  const details = [`/clusters/${clusterId}`, `/jobs/${jobId}`, `/jobs/batches/${batchId}`]
  const changes = /^(Register|Run|Edit|Remove|Cancel|Retry|Install|Uninstall|New|Scan)/
  for (const path of ['/clusters', '/jobs', ...details, '/modules?module=hello']) {
    await page.goto(path)
    await waitForPage(page)
    if (path.includes('module=')) await dialog(page).waitFor()
    for (const role of ['main', 'dialog'] as const) {
      expect(await page.getByRole(role).getByRole('button', { name: changes }).count(), path).toBe(0)
      expect(await page.getByRole(role).getByRole('link', { name: changes }).count(), path).toBe(0)
    }
  }
  await page.goto('/dashboard')
  await button(page, 'Edit dashboard').click()
  await page.locator('.react-grid-item').first().waitFor()
  expect(await page.getByText('Platform update').count()).toBe(0)
  expect(await link(page, 'Users').count()).toBe(0)
})

test('an auditor cannot add entries, and an organisation administrator cannot grant PlatformAdmin', async ({
  open,
  api,
}) => {
  const auditPage = await open('/settings/audit', { as: await api.newUser('Auditor') })
  await auditPage.getByRole('table', { name: 'Audit entries' }).getByRole('row').nth(1).waitFor()
  expect(await button(auditPage, 'Add entry').count()).toBe(0)
  const usersPage = await open('/settings/users', { as: await api.newUser('OrgAdmin') })
  await button(usersPage, 'Create user').click()
  const isDisabled = (name: RegExp) => dialog(usersPage).getByRole('checkbox', { name }).isDisabled()
  expect([await isDisabled(/^PlatformAdmin/), await isDisabled(/^OrgAdmin/)]).toEqual([true, false])
})

async function openAccount(api: Platform, open: Open, tab: string, allow: RegExp[] = []) {
  const user = await api.newUser('Operator')
  return { page: await open(`/settings/account?tab=${tab}`, { as: user, allow }), user }
}

test('the profile shows user, organisation and permissions', async ({ open, api }) => {
  const { page, user } = await openAccount(api, open, 'profile')
  for (const text of [user.username, `${user.username}@example.com`, 'Operator', user.organisationId]) {
    await page.getByText(text, { exact: true }).first().waitFor()
  }
  await page.getByText('Run and cancel jobs').waitFor()
  expect(await page.getByText('Manage users').count()).toBe(0)
  await page.getByRole('tab', { name: 'Profile', selected: true }).press('ArrowRight')
  await page.keyboard.press('Enter')
  await page.waitForURL('**/settings/account?tab=password')
})

test('changing the password ends all other sessions', async ({ open, api }) => {
  const wrongPassword = /^response 401 PUT \/api\/v1\/users\/me\/password$/
  const { page, user } = await openAccount(api, open, 'password', [wrongPassword])
  const change = async (current: string, next: string, repeated = next) => {
    await field(page, 'Current password').fill(current)
    await field(page, 'New password').fill(next)
    await field(page, 'Confirm new password').fill(repeated)
    await button(page, 'Change password').click()
  }
  await change(user.password, 'short')
  await page.getByText('Enter at least 8 characters.').waitFor()
  await change(user.password, 'a longer sentence', 'another sentence')
  await page.getByText('The passwords do not match.').waitFor()
  await change('wrong password', 'a longer sentence')
  await expect.poll(() => field(page, 'Current password').getAttribute('aria-invalid')).toBe('true')
  await change(user.password, 'a longer sentence')
  await page.getByText('All your other sessions have ended.').waitFor()
  expect(await field(page, 'New password').inputValue()).toBe('')
  await expectSessionEnded(api, user.tokens)
  await page.reload()
  await page.getByRole('heading', { name: 'Change password' }).waitFor()
})

test('changing the password revokes API tokens created since the chosen time', async ({ open, api }) => {
  const { page, user } = await openAccount(api, open, 'password')
  const { token } = expectStatus(await user.client.post('/api/v1/users/me/tokens', { name: 'nightly' }), 201)
  const statusAfterChange = async (current: string, next: string, revoked?: string) => {
    await field(page, 'Current password').fill(current)
    await field(page, 'New password').fill(next)
    await field(page, 'Confirm new password').fill(next)
    if (revoked !== undefined) await field(page, 'Revoke API tokens').selectOption(revoked)
    await button(page, 'Change password').click()
    await expect.poll(() => field(page, 'New password').inputValue()).toBe('')
    return (await api.anonymous.withToken(token).get('/api/v1/auth/me')).status
  }
  expect(await statusAfterChange(user.password, 'a longer sentence', 'None')).toBe(200)
  expect(await statusAfterChange('a longer sentence', 'another long sentence')).toBe(401)
})

inTenant('an administrator limits the lifetime of API tokens and sets its default', async ({ open, api }) => {
  const page = await open('/settings/users')
  const form = dialog(page)
  await button(page, 'Settings').click()
  await form.getByLabel('Maximum lifetime of API tokens').fill('30')
  await form.getByLabel('Default lifetime of API tokens').fill('7')
  await button(form, 'Save').click()
  await form.waitFor({ state: 'hidden' })
  const admin = await api.admin
  const create = (body: object) => admin.post('/api/v1/users/me/tokens', { name: 'nightly', ...body })
  const { createdAt, expiresAt } = expectStatus(await create({}), 201)
  expect(Math.round((Date.parse(expiresAt) - Date.parse(createdAt)) / 86_400_000)).toBe(7)
  expectStatus(await create({ expiresAt: null }), 400)
  await button(page, 'Settings').click()
  expect(await form.getByLabel('Maximum lifetime of API tokens').inputValue()).toBe('30')
  await page.goto('/settings/account?tab=tokens')
  await button(page, 'Create API token').click()
  const expires = form.getByLabel('Expires')
  await expect.poll(() => expires.getByRole('option').allInnerTexts()).toEqual(['In 7 days', 'In 30 days'])
  await form.getByLabel('Name').fill('longest')
  await expires.selectOption('In 30 days')
  await button(form, 'Select all').click()
  await button(form, 'Create').click()
  await button(form, 'Done').click()
})

test('other sessions are listed and ended', async ({ open, api }) => {
  const { page, user } = await openAccount(api, open, 'sessions')
  const sessions = [user.tokens, await api.signIn(user), await api.signIn(user)]
  const countSessions = async () => (await page.getByRole('row').count()) - 1
  await page.reload()
  await row(page, 'This session').waitFor()
  await expect.poll(countSessions).toBe(4)
  expect(await row(page, 'This session').getByRole('button').count()).toBe(0)
  await button(page, /^End the session from/)
    .first()
    .click()
  await button(page, 'End').click()
  await expect.poll(countSessions).toBe(3)
  await button(page, 'End all other sessions').click()
  await dialog(page).getByText('End 2 sessions?').waitFor()
  await button(page, 'End').click()
  await expect.poll(countSessions).toBe(1)
  for (const tokens of sessions) await expectSessionEnded(api, tokens)
  expect(await button(page, 'End all other sessions').isDisabled()).toBe(true)
})

test('an API token has the chosen permissions, is shown once and can be revoked', async ({ open, api }) => {
  const { page } = await openAccount(api, open, 'tokens')
  await page.getByText('No API tokens').waitFor()
  await button(page, 'Create API token').click()
  const form = dialog(page)
  await button(form, 'Create').click()
  await expect.poll(() => form.getByLabel('Name').getAttribute('aria-invalid')).toBe('true')
  await form.getByLabel('Name').fill('nightly <i>backup</i>')
  await button(form, 'Create').click()
  await form.getByText('Select at least one permission.').waitFor()
  await form.getByLabel('View clusters, nodes and sites').check()
  await form.getByLabel('Expires').selectOption('In 7 days')
  await button(form, 'Create').click()
  await button(form, 'Copy api token').click()
  await form.getByText('Copied').waitFor()
  const token = String(await page.evaluate('navigator.clipboard.readText()'))
  await button(form, 'Done').click()
  await row(page, 'nightly <i>backup</i>').filter({ hasText: 'in 7 days' }).waitFor()
  expect(await page.content()).not.toContain(token)
  const client = api.anonymous.withToken(token)
  expectStatus(await client.get('/api/v1/jobs'), 403)
  expect(expectStatus(await client.get('/api/v1/auth/me'), 200).permissions).toEqual(['clusters:read'])

  await button(page, 'Revoke nightly <i>backup</i>').click()
  await button(page, 'Cancel').click()
  await row(page, 'nightly').waitFor()
  await button(page, 'Revoke nightly <i>backup</i>').click()
  await button(page, 'Revoke').click()
  await page.getByText('No API tokens').waitFor()
  expectStatus(await client.get('/api/v1/clusters'), 401)
})

test('the chosen theme persists, and both time zones are shown', async ({ open, api }) => {
  const { page } = await openAccount(api, open, 'appearance')
  const background = () => page.evaluate('getComputedStyle(document.documentElement).backgroundColor')
  const light = await background()
  await page.getByRole('radio', { name: 'Dark' }).check()
  await expect.poll(background).not.toBe(light)
  await page.reload()
  await page.getByRole('radio', { name: 'Dark', checked: true }).waitFor()
  expect(await background()).not.toBe(light)
  expect(await page.getByText('Europe/Berlin', { exact: true }).count()).toBe(2)
})
