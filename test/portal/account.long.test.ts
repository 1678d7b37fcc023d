import type { Page } from 'playwright-core'
import { expect } from 'vitest'
import { answered } from '../conformance/support/answer.ts'
import { test } from '../support/portal/shared.ts'
import { faultsOfLook } from '../support/portal/sound.ts'
import type { Open } from '../support/portal/test.ts'
import type { Platform } from '../conformance/support/platform.ts'

/** What belongs to the user alone: password, sessions, API tokens, looks. */

/** A new operator, and their account page. */
async function ofNewPerson(api: Platform, open: Open, tab: string, allow: RegExp[] = []) {
  const person = await api.newPerson('Operator')
  const page = await open(`/settings/account?tab=${tab}`, { as: person, allow })
  return { page, person }
}

const row = (page: Page, text: string | RegExp) => page.getByRole('row').filter({ hasText: text })

test('the profile says who one is and what one may do', async ({ open, api }) => {
  const { page, person } = await ofNewPerson(api, open, 'profile')
  for (const text of [person.username, `${person.username}@example.com`, 'Operator', person.organisationId]) {
    await page.getByText(text, { exact: true }).first().waitFor()
  }
  await page.getByText('Run and cancel jobs').waitFor()
  expect(await page.getByText('Administer users').count()).toBe(0)
})

test('the password is changed, and every other session has ended', async ({ open, api }) => {
  const { page, person } = await ofNewPerson(api, open, 'password', [/^answer 401 PUT \/api\/v1\/users\/me\/password$/])
  const change = async (current: string, next: string, again = next) => {
    await page.getByLabel('Current password', { exact: true }).fill(current)
    await page.getByLabel('New password', { exact: true }).fill(next)
    await page.getByLabel('New password, once more', { exact: true }).fill(again)
    await page.getByRole('button', { name: 'Change password' }).click()
  }
  await change(person.password, 'short')
  await page.getByText('Enter at least 8 characters.').waitFor()
  await change(person.password, 'a longer sentence', 'another sentence')
  await page.getByText('The two are not the same.').waitFor()
  await change('not the one', 'a longer sentence')
  await expect
    .poll(() => page.getByLabel('Current password', { exact: true }).getAttribute('aria-invalid'))
    .toBe('true')
  await page.getByRole('alert').getByText('Trace id').waitFor()
  await change(person.password, 'a longer sentence')
  await page.getByText('All your other sessions have ended.').waitFor()
  expect(await page.getByLabel('New password', { exact: true }).inputValue()).toBe('')

  const { refreshToken } = person.tokens
  answered(await api.anonymous.post('/api/v1/auth/refresh', { refreshToken }), 401)
  await api.signIn({ username: person.username, password: 'a longer sentence' })
  await page.reload()
  await page.getByRole('heading', { name: 'Change password' }).waitFor()
})

test('sessions are listed and ended, all but the own one', async ({ open, api }) => {
  const { page, person } = await ofNewPerson(api, open, 'sessions')
  const others = [person.tokens, await api.signIn(person), await api.signIn(person)]
  await page.reload()
  await row(page, 'This session').waitFor()
  await expect.poll(() => page.getByRole('row').count()).toBe(1 + 4)
  expect(await row(page, 'This session').getByRole('button').count()).toBe(0)

  await page
    .getByRole('button', { name: /^End the session from/ })
    .first()
    .click()
  await page.getByRole('button', { name: 'End', exact: true }).click()
  await expect.poll(() => page.getByRole('row').count()).toBe(1 + 3)
  await page.getByRole('button', { name: 'End all other sessions' }).click()
  await page.getByRole('dialog').getByText('End 2 sessions?').waitFor()
  await page.getByRole('button', { name: 'End', exact: true }).click()
  await expect.poll(() => page.getByRole('row').count()).toBe(1 + 1)
  for (const { refreshToken } of others) {
    answered(await api.anonymous.post('/api/v1/auth/refresh', { refreshToken }), 401)
  }
  expect(await page.getByRole('button', { name: 'End all other sessions' }).isDisabled()).toBe(true)
})

test('an API token is made with what is chosen, shown once, copied, and revoked', async ({ open, api }) => {
  const { page } = await ofNewPerson(api, open, 'tokens')
  await page.getByText('No API tokens').waitFor()
  await page.getByRole('button', { name: 'Create API token' }).click()
  const dialog = page.getByRole('dialog')
  await dialog.getByRole('button', { name: 'Create', exact: true }).click()
  await expect.poll(() => dialog.getByLabel('Name').getAttribute('aria-invalid')).toBe('true')
  await dialog.getByLabel('Name').fill('nightly <i>backup</i>')
  await dialog.getByRole('button', { name: 'Create', exact: true }).click()
  await dialog.getByText('Choose at least one.').waitFor()
  await dialog.getByLabel('See clusters, nodes and sites').check()
  await dialog.getByLabel('Expires').selectOption('In 7 days')
  await dialog.getByRole('button', { name: 'Create', exact: true }).click()
  await dialog.getByRole('button', { name: 'Copy api token' }).click()
  await dialog.getByText('Copied').waitFor()
  const token = String(await page.evaluate('navigator.clipboard.readText()'))
  await dialog.getByRole('button', { name: 'Done' }).click()
  await row(page, 'nightly <i>backup</i>').waitFor()
  expect(await page.content()).not.toContain(token)

  const program = api.anonymous.withToken(token)
  answered(await program.get('/api/v1/clusters'), 200)
  answered(await program.get('/api/v1/jobs'), 403)
  const [made] = answered(await program.get('/api/v1/auth/me'), 200).permissions
  expect(made).toBe('clusters:read')
  expect(
    await row(page, 'nightly')
      .getByText(/in 7 days/)
      .count(),
  ).toBe(1)

  await page.getByRole('button', { name: 'Revoke nightly <i>backup</i>' }).click()
  await page.getByRole('button', { name: 'Keep as it is' }).click()
  await row(page, 'nightly').waitFor()
  await page.getByRole('button', { name: 'Revoke nightly <i>backup</i>' }).click()
  await page.getByRole('button', { name: 'Revoke', exact: true }).click()
  await page.getByText('No API tokens').waitFor()
  answered(await program.get('/api/v1/clusters'), 401)
})

test('the theme that is chosen lasts, and the zones of the browser and the platform are shown', async ({
  open,
  api,
}) => {
  const { page } = await ofNewPerson(api, open, 'appearance')
  const paper = () => page.evaluate('getComputedStyle(document.documentElement).backgroundColor')
  const light = await paper()
  await page.getByRole('radio', { name: 'Dark' }).check()
  await expect.poll(paper).not.toBe(light)
  await page.reload()
  await page.getByRole('radio', { name: 'Dark', checked: true }).waitFor()
  expect(await paper()).not.toBe(light)
  expect(await page.getByText('Europe/Berlin', { exact: true }).count()).toBe(2)
})

test('tabs are reached by the keyboard and by their address', async ({ open, api }) => {
  const { page } = await ofNewPerson(api, open, 'nonsense')
  await page.getByRole('tab', { name: 'Profile', selected: true }).focus()
  await page.keyboard.press('ArrowRight')
  await page.keyboard.press('Enter')
  await page.getByRole('heading', { name: 'Change password' }).waitFor()
  expect(page.url()).toContain('tab=password')
})

test('each tab is accessible and fits 360 pixels, in both themes', async ({ open, api }) => {
  const page = await open('/settings/account')
  const client = await api.admin
  const body = { name: `A name as long as a name of a token may be ${'x'.repeat(50)}` }
  answered(await client.post('/api/v1/users/me/tokens', body), 201)
  // The others are as they are on every platform: pages.test.ts.
  for (const tab of ['profile', 'password', 'sessions', 'tokens', 'appearance']) {
    await page.goto(`/settings/account?tab=${tab}`)
    await page.getByRole('tabpanel').getByRole('heading').first().waitFor()
    if (tab === 'sessions' || tab === 'tokens') await page.getByRole('table').waitFor()
    expect(await faultsOfLook(page, `account-${tab}`)).toEqual([])
  }
  await page.goto('/settings/account?tab=tokens')
  await page.getByRole('button', { name: 'Create API token' }).click()
  await page.getByRole('dialog').waitFor()
  expect(await faultsOfLook(page, 'account-new-token')).toEqual([])
})
