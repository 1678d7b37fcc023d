import type { Locator, Page } from 'playwright-core'
import { expect } from 'vitest'
import { expectStatus } from '../conformance/support/answer.ts'
import { button, dialog, field, row } from '../support/portal/locators.ts'
import { testAsAdministrator as test } from '../support/portal/shared.ts'

const password = 'correct horse battery'

async function openAction(page: Page, username: string, action: string): Promise<Locator> {
  await button(page, `Actions for ${username}`).click()
  await page.getByRole('menuitem', { name: action }).click()
  await dialog(page).waitFor()
  return dialog(page)
}

async function openCreate(page: Page, username: string): Promise<Locator> {
  await button(page, 'Create user').click()
  await fillUser(dialog(page), username)
  return dialog(page)
}

async function fillUser(form: Locator, username: string): Promise<void> {
  await field(form, 'User name').fill(username)
  await field(form, 'E-mail').fill(`${username.replaceAll(' ', '')}@example.com`)
  await field(form, 'Password').fill(password)
}

test('a user is created with described roles and can sign in', async ({ open, api }) => {
  const page = await open('/settings/users')
  await row(page, 'ada').getByText('You').waitFor()
  const form = await openCreate(page, 'grace')
  await button(form, 'Create user').click()
  await form.getByText('Choose at least one role.').waitFor()
  await form.getByText('Read the audit trail').first().waitFor()
  await form.getByRole('checkbox', { name: /^Auditor/ }).check()
  await form.getByRole('checkbox', { name: /^Operator/ }).check()
  await button(form, 'Create user').click()
  await row(page, 'grace').getByText('Operator, Auditor').waitFor()
  await api.signIn({ username: 'grace', password })
})

test('a rejected user keeps the form and shows the error at its field', async ({ open, api: _isSetUp }) => {
  const page = await open('/settings/users', { allow: [/^response 40[09] POST \/api\/v1\/users$/] })
  const form = await openCreate(page, 'ada')
  await form.getByRole('checkbox', { name: /^Viewer/ }).check()
  await button(form, 'Create user').click()
  await form.getByText('Another user of the platform has this name.').waitFor()
  await button(form, 'Copy trace id').waitFor()
  expect(await field(form, 'E-mail').inputValue()).toBe('ada@example.com')
  await field(form, 'User name').fill('no spaces here')
  await button(form, 'Create user').click()
  await expect.poll(() => field(form, 'User name').getAttribute('aria-invalid')).toBe('true')
})

test('e-mail, roles and password are changed at an address', async ({ open, api }) => {
  const user = await api.newPerson('Operator')
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
  expectStatus(await api.anonymous.post('/api/v1/auth/refresh', { refreshToken: user.tokens.refreshToken }), 401)
})

test('an edit keeps roles that were changed at the same time; reopening shows them', async ({ open, api }) => {
  const { id, username } = await api.newPerson('Operator')
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
  const reopened = await openAction(page, username, 'Edit')
  expect(await reopened.getByRole('checkbox', { name: /^Operator/ }).isChecked()).toBe(true)
})

test('arrow keys move between rows without opening menus', async ({ open, api }) => {
  for (let count = 0; count < 2; count++) await api.newPerson('Viewer')
  const page = await open('/settings/users')
  const buttons = button(page, /^Actions for /)
  const labels = await buttons.evaluateAll((all) => all.map((element: any) => element.getAttribute('aria-label')))
  await buttons.first().focus()
  await page.keyboard.press('ArrowDown')
  await expect
    .poll(() => page.evaluate(() => (globalThis as any).document.activeElement.getAttribute('aria-label')))
    .toBe(labels[1])
  expect(await page.getByRole('menu').count()).toBe(0)
})

test('sessions, API tokens and users are removed after confirmation', async ({ open, api }) => {
  const user = await api.newPerson('Operator')
  const { token } = expectStatus(await user.client.post('/api/v1/users/me/tokens', { name: 'nightly' }), 201)
  const page = await open('/settings/users')
  const confirm = async (action: string) => {
    const confirmation = await openAction(page, user.username, action)
    await button(confirmation, action).click()
    await confirmation.waitFor({ state: 'hidden' })
  }
  await confirm('End sessions')
  expectStatus(await api.anonymous.post('/api/v1/auth/refresh', { refreshToken: user.tokens.refreshToken }), 401)
  expectStatus(await api.anonymous.withToken(token).get('/api/v1/auth/me'), 200)
  await confirm('Revoke API tokens')
  expectStatus(await api.anonymous.withToken(token).get('/api/v1/auth/me'), 401)
  await openAction(page, user.username, 'Remove')
  await page.keyboard.press('Escape')
  await row(page, user.username).waitFor()
  await confirm('Remove')
  await row(page, user.username).waitFor({ state: 'detached' })
})

test('the last administrator cannot be removed', async ({ open, api: _isSetUp }) => {
  const page = await open('/settings/users', { allow: [/^response 409 DELETE /] })
  const confirmation = await openAction(page, 'ada', 'Remove')
  await button(confirmation, 'Remove').click()
  await confirmation.getByText('The platform must keep at least one administrator.').waitFor()
  await confirmation.getByText('Trace id').waitFor()
  await button(confirmation, 'Cancel').click()
  await row(page, 'ada').first().waitFor()
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

  await button(page, 'Add first administrator of Acme East').click()
  await fillUser(form, 'east.other')
  await button(form, 'Create user').click()
  await form.getByText('The organisation has users of its own').waitFor()
  await button(form, 'Cancel').click()
  await create('acme east')
  await page.getByText('Another organisation has this name.').waitFor()
})
