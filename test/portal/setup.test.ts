import { expect } from 'vitest'
import { isLong } from '../support/long.ts'
import { administrator } from '../support/portal/open.ts'
import { faultsOfLook } from '../support/portal/sound.ts'
import { test } from '../support/portal/test.ts'
import { field, fillUpTo, heading, next, stranger, tokenOf } from '../support/portal/wizard.ts'

/** The first-run wizard, on a platform that was never set up. The last test sets it up. */

const { password } = administrator

test('a platform that was never set up leads to the wizard from anywhere', async ({ open }) => {
  const page = await open('/clusters', stranger)
  await heading(page, 'Welcome').waitFor()
  expect(new URL(page.url()).pathname).toBe('/setup')
  await page.goto('/sign-in')
  await heading(page, 'Welcome').waitFor()
})

test('each step is checked before the next, beside the field that it is about', async ({ open }) => {
  const page = await open('/setup', stranger)
  await next(page)
  await next(page)
  await expect.poll(() => page.getByText('Enter a name of 1 to 100 letters.').isVisible()).toBe(true)
  await field(page, 'Name of the platform').fill('Acme')
  await field(page, 'Time zone').fill('Mars/Olympus')
  await next(page)
  await page.getByText('Choose one of the list').waitFor()
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
  await field(page, 'Password, once more').fill('other')
  await next(page)
  await page.getByText('Enter an e-mail address.').waitFor()
  await page.getByText('Enter at least 8 characters.').waitFor()
  await page.getByText('The two are not the same.').waitFor()
  await heading(page, 'Administrator').waitFor()
})

test('a password that was typed once only is not confirmed', async ({ open }) => {
  const page = await open('/setup', stranger)
  await fillUpTo(page, 'Administrator')
  await field(page, 'Password').pressSequentially(password)
  expect(await field(page, 'Password, once more').inputValue()).toBe('')
  await next(page)
  await page.getByText('The two are not the same.').waitFor()
  await field(page, 'Password, once more').pressSequentially(password)
  await next(page)
  await heading(page, 'One-time token').waitFor()
})

test.runIf(isLong)('the time zone is that of the browser until another one is chosen', async ({ open }) => {
  const page = await open('/setup', { ...stranger, timezone: 'Asia/Tokyo' })
  await next(page)
  expect(await field(page, 'Time zone').inputValue()).toBe('Asia/Tokyo')
})

test.runIf(isLong)(
  'the wizard goes on where it was after the browser was closed, without password and token',
  async ({ open }) => {
    const page = await open('/setup', stranger)
    await fillUpTo(page, 'One-time token')
    await field(page, 'Token').fill('admin.secret-of-nobody')
    await page.reload()
    await heading(page, 'Administrator').waitFor()
    await page.getByText('The password is not kept').waitFor()
    expect(await field(page, 'User name').inputValue()).toBe('ada')
    expect(await field(page, 'Password').inputValue()).toBe('')

    const cookies = await page.context().cookies()
    const kept = decodeURIComponent(JSON.stringify(cookies))
    expect(kept).toContain('ada@example.com')
    const stored = String(await page.evaluate('JSON.stringify([localStorage, sessionStorage])'))
    expect(stored).not.toContain('ada@example.com')
    expect(kept + stored).not.toMatch(/correct horse|secret-of-nobody/)

    const reopened = await page.context().newPage()
    await reopened.goto('/')
    await heading(reopened, 'Administrator').waitFor()
    expect(await field(reopened, 'E-mail').inputValue()).toBe('ada@example.com')
  },
)

test.runIf(isLong)('a step cannot be skipped by its address', async ({ open }) => {
  const page = await open('/setup?step=review', stranger)
  await heading(page, 'Platform').waitFor()
})

test.runIf(isLong)(
  'the wizard goes by the keyboard alone: Enter goes on, and the next field has the focus',
  async ({ open }) => {
    const page = await open('/setup', stranger)
    await page.keyboard.press('Enter')
    await heading(page, 'Platform').waitFor()
    await page.keyboard.type('Acme')
    await page.keyboard.press('Enter')
    await heading(page, 'Network').waitFor()
    await page.keyboard.type('https://platform.example.com')
    await page.keyboard.press('Enter')
    await heading(page, 'Administrator').waitFor()
    const current = page.getByRole('navigation', { name: 'Steps of the setup' }).locator('[aria-current=step]')
    expect(await current.textContent()).toContain('Administrator')
    await page.goBack()
    await heading(page, 'Network').waitFor()
  },
)

test('a wrong token is refused at its step, with a trace id, and is not used up', async ({ open }) => {
  const page = await open('/setup', stranger)
  await fillUpTo(page, 'One-time token')
  await field(page, 'Token').fill('admin.wrong')
  await next(page)
  const alert = page.getByRole('alert')
  await alert.getByText('This is not the token').first().waitFor()
  await alert.getByText('Trace id').waitFor()
  await heading(page, 'One-time token').waitFor()
})

test.runIf(isLong)('an expired token says what to do', async ({ open }) => {
  const page = await open('/setup', stranger)
  await fillUpTo(page, 'One-time token')
  await field(page, 'Token').fill('admin.old')
  // A token lives a day: nobody waits for that here.
  await page.route('**/setup/complete', (route) =>
    route.fulfill({
      status: 422,
      json: { error: 'initial_admin_token_expired', message: 'old', traceId: 'x'.repeat(16) },
    }),
  )
  await next(page)
  await page.getByText('Restart the platform twice').first().waitFor()
})

test.runIf(isLong)('what only the platform can tell leads to the step that asks for it', async ({ open, platform }) => {
  const page = await open('/setup', stranger)
  await next(page)
  await field(page, 'Name of the platform').fill('Acme')
  await next(page)
  await field(page, 'Public address').fill('https://platform.example.com')
  await next(page)
  await field(page, 'User name').fill('ada')
  // An address to the wizard, and none to the platform.
  await field(page, 'E-mail').fill('ada@-.-')
  await field(page, 'Password').fill(password)
  await field(page, 'Password, once more').fill(password)
  await next(page)
  await field(page, 'Token').fill(await tokenOf(page, platform))
  await next(page)
  await heading(page, 'Administrator').waitFor()
  await expect.poll(() => field(page, 'E-mail').getAttribute('aria-invalid')).toBe('true')
})

test.runIf(isLong)(
  'every step is accessible, fits 360 pixels, and looks right in both themes',
  async ({ open, platform }) => {
    const page = await open('/setup', stranger)
    const look = async (name: string) => {
      expect(await faultsOfLook(page, `setup-${name}`)).toEqual([])
    }
    await page.getByRole('group', { name: 'How to get the token' }).waitFor()
    await look('welcome')
    await fillUpTo(page, 'Administrator')
    await look('administrator')
    for (const step of ['platform', 'network']) {
      await page.getByRole('link', { name: step === 'platform' ? 'Platform' : 'Network' }).click()
      await look(step)
      for (let left = step === 'platform' ? 2 : 1; left > 0; left--) await next(page)
    }
    await field(page, 'Password').fill(password)
    await field(page, 'Password, once more').fill(password)
    await next(page)
    await field(page, 'Token').fill(await tokenOf(page, platform))
    await look('token')
    await next(page)
    await heading(page, 'Review').waitFor()
    await look('review')
  },
)

test('the wizard completes setup and goes on signed in, with nothing left of its answers', async ({
  open,
  platform,
}) => {
  const page = await open('/', stranger)
  await fillUpTo(page, 'One-time token')
  await field(page, 'Token').fill(await tokenOf(page, platform))
  await next(page)
  await page.getByText('platform.example.com').waitFor()
  expect(await page.locator('main').textContent()).not.toContain(password)
  await page.getByRole('link', { name: 'Change: Platform' }).click()
  await field(page, 'Name of the platform').fill('Acme Works')
  for (const title of ['Network', 'Administrator', 'One-time token', 'Review']) {
    await next(page)
    await heading(page, title).waitFor()
  }
  await page.getByRole('button', { name: 'Complete setup' }).click()
  await page.waitForURL('**/dashboard')
  await page.getByText('Acme Works').first().waitFor()
  const names = (await page.context().cookies()).map(({ name }) => name)
  expect(names).not.toContain('plat_portal_setup')
  await page.goto('/setup')
  await page.waitForURL('**/dashboard')
})
