import { expect } from 'vitest'
import { appearanceErrors } from '../support/portal/accessibility.ts'
import { button, field, heading, link } from '../support/portal/locators.ts'
import { administrator } from '../support/portal/open.ts'
import { testOnOwnPlatform as test } from '../support/portal/test.ts'
import { fillPassword, fillUpTo, next, setupToken, setupView as view, waitForStep } from '../support/portal/wizard.ts'

/** The setup wizard of a new platform. The last test completes setup. */

const { password } = administrator

test('every address of a new platform leads to the first incomplete step', async ({ open }) => {
  const page = await open('/clusters', view)
  await waitForStep(page, 'Welcome')
  expect(new URL(page.url()).pathname).toBe('/setup')
  for (const path of ['/sign-in', '/setup?step=welcome']) {
    await page.goto(path)
    await waitForStep(page, 'Welcome')
  }
  await page.goto('/setup?step=review')
  await waitForStep(page, 'Platform')
})

test('each step validates its fields', async ({ open }) => {
  const page = await open('/setup', { ...view, timezone: 'Asia/Tokyo' })
  await next(page)
  expect(await field(page, 'Time zone').inputValue()).toBe('Asia/Tokyo')
  await next(page)
  await page.getByText('Enter 1 to 100 characters.').waitFor()
  await field(page, 'Platform name').fill('Acme')
  await field(page, 'Time zone').fill('Mars/Olympus')
  await next(page)
  await page.getByText('Select a time zone').waitFor()
  await field(page, 'Time zone').fill('UTC')
  await next(page)
  for (const address of ['', 'http://platform.example.com', 'https://user@platform.example.com']) {
    await field(page, 'Public address').fill(address)
    await next(page)
    await expect.poll(() => field(page, 'Public address').getAttribute('aria-invalid')).toBe('true')
  }
  await field(page, 'Public address').fill('https://platform.example.com')
  await next(page)
  await field(page, 'User name').fill('-')
  await field(page, 'E-mail').fill('ada')
  await field(page, 'Password').fill('short')
  await next(page)
  for (const text of ['Enter an e-mail address.', 'Enter at least 8 characters.', 'The passwords do not match.'])
    await page.getByText(text).waitFor()
  await waitForStep(page, 'Administrator')
})

test('a reload keeps the values, but neither password nor token', async ({ open }) => {
  const page = await open('/setup', view)
  await fillUpTo(page, 'One-time token')
  await field(page, 'Token').fill('admin.secret-token')
  await page.reload()
  await waitForStep(page, 'Administrator')
  await page.getByText('The password is not saved').waitFor()
  expect(await field(page, 'User name').inputValue()).toBe('ada')
  expect(await field(page, 'Password').inputValue()).toBe('')

  const cookies = decodeURIComponent(JSON.stringify(await page.context().cookies()))
  expect(cookies).toContain('ada@example.com')
  const storedText = String(await page.evaluate('JSON.stringify([localStorage, sessionStorage])'))
  expect(storedText).not.toContain('ada@example.com')
  expect(cookies + storedText).not.toMatch(/correct horse|secret-token/)

  const reopenedPage = await page.context().newPage()
  await reopenedPage.goto('/')
  await waitForStep(reopenedPage, 'Administrator')
  expect(await field(reopenedPage, 'E-mail').inputValue()).toBe('ada@example.com')
})

test('the wizard works by keyboard alone', async ({ open }) => {
  const page = await open('/setup', view)
  await page.keyboard.press('Enter')
  await waitForStep(page, 'Platform')
  await page.keyboard.type('Acme')
  await page.keyboard.press('Enter')
  await waitForStep(page, 'Network')
  // Replaces the proposed address.
  await page.keyboard.press('ControlOrMeta+A')
  await page.keyboard.type('https://platform.example.com')
  await page.keyboard.press('Enter')
  await waitForStep(page, 'Administrator')
  const current = page.getByRole('navigation', { name: 'Setup steps' }).locator('[aria-current=step]')
  expect(await current.textContent()).toContain('Administrator')
  await page.goBack()
  await waitForStep(page, 'Network')
})

test('rejects a wrong or expired token at its step', async ({ open }) => {
  const page = await open('/setup', view)
  await fillUpTo(page, 'One-time token')
  await field(page, 'Token').fill('admin.wrong')
  await next(page)
  await page.getByText('The token is wrong.').waitFor()
  expect(await page.getByText(/Trace id|initialAdminToken/).count()).toBe(0)
  await waitForStep(page, 'One-time token')
  const json = { error: 'initial_admin_token_expired', message: 'old', traceId: 'x'.repeat(16) }
  await page.route('**/setup/complete', (route) => route.fulfill({ status: 422, json }))
  await field(page, 'Token').fill('admin.expired')
  await next(page)
  await page.getByText('Restart the platform twice').first().waitFor()
})

test('a value that only the platform rejects returns the user to its step', async ({ open, platform }) => {
  const page = await open('/setup', view)
  await fillUpTo(page, 'Administrator')
  // Valid for the wizard, invalid for the API.
  await field(page, 'E-mail').fill('ada@-.-')
  await fillPassword(page)
  await next(page)
  await field(page, 'Token').fill(await setupToken(page, platform))
  await next(page)
  await waitForStep(page, 'Administrator')
  await expect.poll(() => field(page, 'E-mail').getAttribute('aria-invalid')).toBe('true')
})

test('every step is accessible and responsive', async ({ open, platform }) => {
  const page = await open('/setup', view)
  const check = async (name: string) => expect(await appearanceErrors(page, `setup-${name}`)).toEqual([])
  await page.getByRole('group', { name: 'How to get the token' }).waitFor()
  await check('welcome')
  await fillUpTo(page, 'Administrator')
  await check('administrator')
  for (const [name, steps] of Object.entries({ Platform: 2, Network: 1 })) {
    await link(page, name).click()
    await check(name)
    for (let stepsLeft = steps; stepsLeft > 0; stepsLeft--) await next(page)
  }
  await fillPassword(page)
  await next(page)
  await field(page, 'Token').fill(await setupToken(page, platform))
  await check('token')
  await next(page)
  await waitForStep(page, 'Review')
  await check('review')
})

test('reviews the values, retries a lost response and removes its data', async ({ open, platform }) => {
  const page = await open('/', { ...view, allow: [...(view.allow ?? []), /setup\/complete/] })
  await fillUpTo(page, 'One-time token')
  await field(page, 'Token').fill(await setupToken(page, platform))
  await next(page)
  await page.getByText('platform.example.com').waitFor()
  expect(await page.locator('main').textContent()).not.toContain(password)
  await link(page, 'Change: Platform').click()
  await field(page, 'Platform name').fill('Acme Works')
  for (const name of ['Network', 'Administrator', 'One-time token', 'Review']) {
    await next(page)
    await waitForStep(page, name)
  }
  await page.route(
    '**/setup/complete',
    async (route) => {
      await route.fetch()
      await route.abort('connectionreset')
    },
    { times: 1 },
  )
  await button(page, 'Complete setup').click()
  await page.getByText('Try again: nothing is done twice').waitFor()
  await button(page, 'Complete setup').click()
  await page.getByText('Setup is complete. Sign in as the administrator.').waitFor()
  await field(page, 'User name').fill(administrator.username)
  await field(page, 'Password').fill(password)
  await button(page, 'Sign in').click()
  await heading(page, 'Dashboard').waitFor()
  await page.getByText('Acme Works').first().waitFor()
  expect((await page.context().cookies()).map(({ name }) => name)).not.toContain('plat_portal_setup')
  await page.goto('/setup')
  await page.waitForURL('**/dashboard')
})
