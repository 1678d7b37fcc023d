import { expect } from 'vitest'
import { dialog, heading } from '../support/portal/parts.ts'
import { test } from '../support/portal/test.ts'

/** What a page does while the platform does not answer, and when it does again. */

const allowed = [/^failed /, /^console error: /, /^answer 50\d /]
const banner = 'The platform does not answer just now.'

test('a tab that is open while the platform is away keeps what it shows, says so, and goes on by itself', async ({
  open,
  platform,
  api,
}) => {
  await api.newCluster({ name: 'berlin-1' })
  const page = await open('/clusters', { allow: allowed })
  await page.getByRole('link', { name: 'berlin-1' }).waitFor()
  await platform.kill()

  await page.getByText(banner).waitFor({ timeout: 60_000 })
  expect(await page.getByRole('link', { name: 'berlin-1' }).isVisible()).toBe(true)
  // A part of the page that was not wanted before: told in passing, and the page stays.
  await page.keyboard.press('Control+k')
  await page.getByText('The search could not be opened').first().waitFor()
  expect(await page.getByRole('link', { name: 'berlin-1' }).isVisible()).toBe(true)
  // A page whose file was not loaded yet: told, and the tab is not lost to a page of the browser.
  await page.getByRole('navigation', { name: 'Main' }).getByRole('link', { name: 'Audit trail' }).click()
  await heading(page, 'This page could not be shown').waitFor()
  await page.getByRole('main').getByRole('alert').getByText('cannot be reached').waitFor()

  await platform.restart()
  await heading(page, 'Audit trail').waitFor({ timeout: 90_000 })
  await page.getByText(banner).waitFor({ state: 'detached' })
})

test('a dialog begins at its first field, so that what is typed lands there', async ({ open, api }) => {
  await api.newCluster({ name: 'first-field' })
  const page = await open('/clusters')
  await page.getByRole('button', { name: 'Sites' }).click()
  await dialog(page).waitFor()
  await page.keyboard.type('Frankfurt am Main')
  await expect.poll(() => dialog(page).getByRole('textbox').first().inputValue()).toBe('Frankfurt am Main')
})

test('after a reload the page of a registration leads to the cluster, which waits for its relay', async ({
  open,
  api,
}) => {
  await api.newCluster({ name: 'registered before' })
  const page = await open('/clusters/register')
  await page.getByRole('textbox', { name: 'Name' }).fill('munich-1')
  await page.getByRole('button', { name: 'Register cluster' }).click()
  await page.getByText('Waiting for the relay').waitFor()
  await page.reload()
  await heading(page, 'munich-1').waitFor()
  await page.getByRole('button', { name: 'New enrollment token' }).waitFor()
})
