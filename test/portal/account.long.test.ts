import { expect } from 'vitest'
import { expectStatus } from '../conformance/support/answer.ts'
import type { Platform } from '../conformance/support/platform.ts'
import { button, dialog, field, row } from '../support/portal/locators.ts'
import { test } from '../support/portal/shared.ts'
import type { Open } from '../support/portal/test.ts'

/** The account page of a new operator. */
async function openAccount(api: Platform, open: Open, tab: string, allow: RegExp[] = []) {
  const user = await api.newPerson('Operator')
  const page = await open(`/settings/account?tab=${tab}`, { as: user, allow })
  return { page, user }
}

test('the profile shows user, organisation and permissions', async ({ open, api }) => {
  const { page, user } = await openAccount(api, open, 'profile')
  for (const text of [user.username, `${user.username}@example.com`, 'Operator', user.organisationId]) {
    await page.getByText(text, { exact: true }).first().waitFor()
  }
  await page.getByText('Run and cancel jobs').waitFor()
  expect(await page.getByText('Manage users').count()).toBe(0)
  await page.getByRole('tab', { name: 'Profile', selected: true }).focus()
  await page.keyboard.press('ArrowRight')
  await page.keyboard.press('Enter')
  await page.waitForURL('**/settings/account?tab=password')
})

test('changing the password ends all other sessions', async ({ open, api }) => {
  const wrongPassword = /^response 401 PUT \/api\/v1\/users\/me\/password$/
  const { page, user } = await openAccount(api, open, 'password', [wrongPassword])
  const change = async (current: string, next: string, again = next) => {
    await field(page, 'Current password').fill(current)
    await field(page, 'New password').fill(next)
    await field(page, 'Confirm new password').fill(again)
    await button(page, 'Change password').click()
  }
  await change(user.password, 'short')
  await page.getByText('Enter at least 8 characters.').waitFor()
  await change(user.password, 'a longer sentence', 'another sentence')
  await page.getByText('The passwords do not match.').waitFor()
  await change('wrong password', 'a longer sentence')
  await expect.poll(() => field(page, 'Current password').getAttribute('aria-invalid')).toBe('true')
  await page.getByRole('alert').getByText('Trace id').waitFor()
  await change(user.password, 'a longer sentence')
  await page.getByText('All your other sessions have ended.').waitFor()
  expect(await field(page, 'New password').inputValue()).toBe('')
  const { refreshToken } = user.tokens
  expectStatus(await api.anonymous.post('/api/v1/auth/refresh', { refreshToken }), 401)
  await page.reload()
  await page.getByRole('heading', { name: 'Change password' }).waitFor()
})

test('other sessions are listed and ended', async ({ open, api }) => {
  const { page, user } = await openAccount(api, open, 'sessions')
  const others = [user.tokens, await api.signIn(user), await api.signIn(user)]
  await page.reload()
  await row(page, 'This session').waitFor()
  await expect.poll(() => page.getByRole('row').count()).toBe(1 + 4)
  expect(await row(page, 'This session').getByRole('button').count()).toBe(0)
  await button(page, /^End the session from/)
    .first()
    .click()
  await button(page, 'End').click()
  await expect.poll(() => page.getByRole('row').count()).toBe(1 + 3)
  await button(page, 'End all other sessions').click()
  await dialog(page).getByText('End 2 sessions?').waitFor()
  await button(page, 'End').click()
  await expect.poll(() => page.getByRole('row').count()).toBe(1 + 1)
  for (const { refreshToken } of others) {
    expectStatus(await api.anonymous.post('/api/v1/auth/refresh', { refreshToken }), 401)
  }
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
  await row(page, 'nightly <i>backup</i>')
    .getByText(/in 7 days/)
    .waitFor()
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
