import type { Locator, Page } from 'playwright-core'
import { expect } from 'vitest'
import { answered } from '../conformance/support/answer.ts'
import { livePayloads } from '../support/portal/payloads.ts'
import { faultsOfLook } from '../support/portal/sound.ts'
import { asAdministrator as test } from '../support/portal/shared.ts'
import { fillEveryTextField } from '../support/portal/text-fields.ts'

/** Users and organisations, as those who administer them see them. */

const row = (page: Page, text: string) => page.getByRole('row').filter({ hasText: text })
/** What is said in passing has the role of a dialog too. */
const dialogIn = (page: Page) => page.getByRole('dialog').filter({ has: page.locator('form') })
const password = 'correct horse battery'

async function act(page: Page, username: string, action: string): Promise<Locator> {
  await page.getByRole('button', { name: `Actions for ${username}` }).click()
  await page.getByRole('menuitem', { name: action }).click()
  const dialog = dialogIn(page)
  await dialog.waitFor()
  return dialog
}

async function fill(dialog: Locator, username: string): Promise<void> {
  await dialog.getByLabel('User name').fill(username)
  await dialog.getByLabel('E-mail').fill(`${username}@example.com`)
  await dialog.getByLabel('Password', { exact: true }).fill(password)
}

test('a user is created with roles whose meaning is told, and can sign in', async ({ open, api }) => {
  const page = await open('/settings/users')
  await row(page, 'ada').getByText('You').waitFor()
  await page.getByRole('button', { name: 'Create user' }).click()
  const dialog = dialogIn(page)
  await fill(dialog, 'grace')
  await dialog.getByRole('button', { name: 'Create user' }).click()
  await dialog.getByText('Choose at least one role.').waitFor()
  await dialog.getByText('Read the audit trail').first().waitFor()
  await dialog.getByRole('checkbox', { name: /^Auditor/ }).check()
  await dialog.getByRole('checkbox', { name: /^Operator/ }).check()
  await dialog.getByRole('button', { name: 'Create user' }).click()
  await row(page, 'grace').getByText('Operator, Auditor').waitFor()
  await api.signIn({ username: 'grace', password })
})

test('a name that is taken is told with its trace id, and nothing that was typed is lost', async ({
  open,
  api: _isSetUp,
}) => {
  const page = await open('/settings/users', { allow: [/^answer 409 POST \/api\/v1\/users$/] })
  await page.getByRole('button', { name: 'Create user' }).click()
  const dialog = dialogIn(page)
  await fill(dialog, 'ada')
  await dialog.getByRole('checkbox', { name: /^Viewer/ }).check()
  await dialog.getByRole('button', { name: 'Create user' }).click()
  await dialog.getByText('Another user of the platform has this name.').waitFor()
  await dialog.getByRole('button', { name: 'Copy trace id' }).waitFor()
  expect(await dialog.getByLabel('E-mail').inputValue()).toBe('ada@example.com')
})

test('what the platform does not take stands beside its field', async ({ open, api: _isSetUp }) => {
  const page = await open('/settings/users', { allow: [/^answer 400 POST \/api\/v1\/users$/] })
  await page.getByRole('button', { name: 'Create user' }).click()
  const dialog = dialogIn(page)
  await fill(dialog, 'no spaces here')
  await dialog.getByRole('checkbox', { name: /^Viewer/ }).check()
  await dialog.getByRole('button', { name: 'Create user' }).click()
  await expect.poll(() => dialog.getByLabel('User name').getAttribute('aria-invalid')).toBe('true')
})

test('e-mail, roles and password of a user are changed, at an address of its own', async ({ open, api }) => {
  const person = await api.newPerson('Operator')
  const page = await open('/settings/users')
  await act(page, person.username, 'Edit')
  await page.waitForURL(`**/settings/users?user=${person.id}`)
  await page.reload()
  const dialog = dialogIn(page)
  await dialog.getByLabel('E-mail').fill('new@example.com')
  await dialog.getByRole('checkbox', { name: /^Operator/ }).uncheck()
  await dialog.getByText('Choose at least one role.').waitFor()
  await dialog.getByRole('checkbox', { name: /^Viewer/ }).check()
  await dialog.getByLabel('New password').fill('a longer sentence')
  await dialog.getByRole('button', { name: 'Save' }).click()
  await row(page, 'new@example.com').getByText('Viewer').waitFor()
  await api.signIn({ username: person.username, password: 'a longer sentence' })
  answered(await api.anonymous.post('/api/v1/auth/refresh', { refreshToken: person.tokens.refreshToken }), 401)
})

test('whoever changes an e-mail does not give back the roles that somebody else has taken meanwhile', async ({
  open,
  api,
}) => {
  const person = await api.newPerson('Operator')
  const page = await open('/settings/users')
  const dialog = await act(page, person.username, 'Edit')
  await dialog.getByLabel('E-mail').fill('kept@example.com')
  answered(await (await api.admin).patch(`/api/v1/users/${person.id}`, { roles: ['Viewer'] }), 200)
  await dialog.getByRole('button', { name: 'Save' }).click()
  await dialog.waitFor({ state: 'hidden' })
  const changed = answered(await (await api.admin).get(`/api/v1/users/${person.id}`), 200)
  expect(changed).toMatchObject({ email: 'kept@example.com', roles: ['Viewer'] })
})

test('an arrow key leads from row to row, and opens the menu of none', async ({ open, api }) => {
  for (let count = 0; count < 2; count++) await api.newPerson('Viewer')
  const page = await open('/settings/users')
  const buttons = page.getByRole('button', { name: /^Actions for / })
  const labels = await buttons.evaluateAll((all) => all.map((button: any) => button.getAttribute('aria-label')))
  await buttons.first().focus()
  await page.keyboard.press('ArrowDown')
  await expect
    .poll(() => page.evaluate(() => (globalThis as any).document.activeElement.getAttribute('aria-label')))
    .toBe(labels[1])
  expect(await page.getByRole('menu').count()).toBe(0)
})

test('sessions are ended, API tokens revoked and users removed, each after one was asked', async ({ open, api }) => {
  const person = await api.newPerson('Operator')
  const { token } = answered(await person.client.post('/api/v1/users/me/tokens', { name: 'nightly' }), 201)
  const page = await open('/settings/users')

  let dialog = await act(page, person.username, 'End sessions')
  await dialog.getByRole('button', { name: 'End sessions' }).click()
  await dialog.waitFor({ state: 'hidden' })
  answered(await api.anonymous.post('/api/v1/auth/refresh', { refreshToken: person.tokens.refreshToken }), 401)

  answered(await api.anonymous.withToken(token).get('/api/v1/auth/me'), 200)
  dialog = await act(page, person.username, 'Revoke API tokens')
  await dialog.getByRole('button', { name: 'Revoke API tokens' }).click()
  await dialog.waitFor({ state: 'hidden' })
  answered(await api.anonymous.withToken(token).get('/api/v1/auth/me'), 401)

  dialog = await act(page, person.username, 'Remove')
  await page.keyboard.press('Escape')
  await row(page, person.username).waitFor()
  dialog = await act(page, person.username, 'Remove')
  await dialog.getByRole('button', { name: 'Remove' }).click()
  await row(page, person.username).waitFor({ state: 'detached' })
})

test('the last administrator stays, and the reason is told', async ({ open, api: _isSetUp }) => {
  const page = await open('/settings/users', { allow: [/^answer 409 DELETE /] })
  const dialog = await act(page, 'ada', 'Remove')
  await dialog.getByRole('button', { name: 'Remove' }).click()
  await dialog.getByText('The platform needs one administrator.').waitFor()
  await dialog.getByText('Trace id').waitFor()
  await dialog.getByRole('button', { name: 'Keep as it is' }).click()
  await row(page, 'ada').first().waitFor()
})

test('who may not give a role is not offered it', async ({ open, api }) => {
  const page = await open('/settings/users', { as: await api.newPerson('OrgAdmin') })
  await page.getByRole('button', { name: 'Create user' }).click()
  const dialog = dialogIn(page)
  expect(await dialog.getByRole('checkbox', { name: /^PlatformAdmin/ }).isDisabled()).toBe(true)
  expect(await dialog.getByRole('checkbox', { name: /^OrgAdmin/ }).isDisabled()).toBe(false)
})

test('who administers nothing is offered nothing of it', async ({ open, api }) => {
  const page = await open('/dashboard', { as: await api.newPerson('Operator') })
  const navigation = page.getByRole('navigation', { name: 'Main' }).first()
  await navigation.getByRole('link', { name: 'Account' }).waitFor()
  expect(await navigation.getByRole('link', { name: /Users|Organisations/ }).count()).toBe(0)
  for (const path of ['/settings/users', '/settings/organisations']) {
    await page.goto(path)
    await page.getByText('You may not see this page').waitFor()
    expect(await page.getByRole('button', { name: /^Create/ }).count()).toBe(0)
  }
})

test('an organisation is created and gets its first administrator, once', async ({ open, api }) => {
  const page = await open('/settings/organisations', { allow: [/^answer 409 POST /] })
  await row(page, 'Test Platform').getByText('Platform', { exact: true }).waitFor()
  await page.getByRole('button', { name: 'Create organisation' }).click()
  await dialogIn(page).getByLabel('Name').fill('Acme East')
  await dialogIn(page).getByRole('button', { name: 'Create organisation' }).click()

  const dialog = page.getByRole('dialog', { name: 'First administrator of Acme East' })
  await fill(dialog, 'east.admin')
  await dialog.getByRole('button', { name: 'Create user' }).click()
  await dialog.waitFor({ state: 'hidden' })
  const { accessToken } = await api.signIn({ username: 'east.admin', password })
  const { roles } = answered(await api.anonymous.withToken(accessToken).get('/api/v1/auth/me'), 200)
  expect(roles).toEqual(['OrgAdmin'])

  await page.getByRole('button', { name: 'Add first administrator of Acme East' }).click()
  await fill(dialog, 'east.other')
  await dialog.getByRole('button', { name: 'Create user' }).click()
  await dialog.getByText('The organisation has users of its own').waitFor()
  await dialog.getByRole('button', { name: 'Cancel' }).click()

  await page.getByRole('button', { name: 'Create organisation' }).click()
  await dialogIn(page).getByLabel('Name').fill('acme east')
  await dialogIn(page).getByRole('button', { name: 'Create organisation' }).click()
  await page.getByText('Another organisation has this name.').waitFor()
})

test('names are shown as they are written, whatever they hold', async ({ open, api }) => {
  const admin = await api.admin
  for (const [, name] of livePayloads.filter(([, text]) => !/[\t\n]/.test(text))) {
    answered(await admin.post('/api/v1/platform/organisations', { name }), 201)
  }
  const page = await open('/settings/organisations', { allow: [/^answer 4\d\d POST /] })
  await row(page, livePayloads[0]?.[1] ?? '')
    .getByRole('button')
    .click()
  await page.getByRole('heading', { name: `First administrator of ${livePayloads[0]?.[1]}` }).waitFor()
  for (const [, text] of livePayloads) {
    await fillEveryTextField(dialogIn(page), text)
    await dialogIn(page).getByRole('button', { name: 'Create user' }).click()
    await dialogIn(page).getByLabel('User name').waitFor()
  }
})

test('both pages are accessible and fit 360 pixels, in both themes, with their dialogs', async ({ open, api }) => {
  await api.newPerson('Operator')
  const page = await open('/settings/users')
  const look = async (name: string) => {
    expect(await faultsOfLook(page, name)).toEqual([])
  }
  await row(page, 'ada').first().waitFor()
  await look('users')
  await page.getByRole('button', { name: 'Create user' }).click()
  await dialogIn(page).getByRole('checkbox').first().waitFor()
  await look('users-create')
  await page.goto('/settings/organisations')
  await row(page, 'Test Platform').waitFor()
  await look('organisations')
})
