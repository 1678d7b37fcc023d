import type { Page } from 'playwright-core'
import type { PlatformProcess } from '../platform.ts'
import { field, heading } from './locators.ts'
import { administrator, type View } from './open.ts'
import { signedOutErrors } from './pages.ts'

/** The wizard probes the token with incomplete requests, which the API rejects. */
export const setupView: View = {
  as: 'anonymous',
  allow: [...signedOutErrors, /^response (422|400) POST \/api\/v1\/setup\/complete$/],
}

const { username, password } = administrator
export const next = (page: Page) => page.getByRole('button', { name: 'Continue' }).click()
export const waitForStep = (page: Page, name: string) => heading(page, name, 2).waitFor()

export async function setupToken(page: Page, platform: PlatformProcess): Promise<string> {
  const command = await page.getByRole('group', { name: 'How to get the token' }).locator('code').textContent()
  return (await platform.command(command ?? '')).trim()
}

/** Completes all steps before `lastStep`. For `Administrator`, also fills in its user name and e-mail address. */
export async function fillUpTo(page: Page, lastStep: 'Administrator' | 'One-time token'): Promise<void> {
  await next(page)
  await field(page, 'Platform name').fill('Acme Platform')
  await next(page)
  await field(page, 'Public address').fill('https://platform.example.com')
  await next(page)
  await field(page, 'User name').fill(username)
  await field(page, 'E-mail').fill(`${username}@example.com`)
  if (lastStep === 'Administrator') return
  await fillPassword(page)
  await next(page)
  await waitForStep(page, lastStep)
}

export async function fillPassword(page: Page): Promise<void> {
  await field(page, 'Password').fill(password)
  await field(page, 'Confirm password').fill(password)
}
