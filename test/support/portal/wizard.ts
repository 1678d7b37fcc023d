import type { Page } from 'playwright-core'
import type { PlatformProcess } from '../platform.ts'
import { administrator, type View } from './open.ts'

/** The first-run wizard, as whoever sets a platform up goes through it. */

/** A request without a token is refused, and says how to get one; one without a password proves the token. */
export const stranger: View = { as: 'nobody', allow: [/^answer (422|400) POST \/api\/v1\/setup\/complete$/] }

const { username, password } = administrator
export const next = (page: Page) => page.getByRole('button', { name: 'Continue' }).click()
export const heading = (page: Page, name: string) => page.getByRole('heading', { level: 2, name, exact: true })
export const field = (page: Page, label: string) => page.getByLabel(label, { exact: true })

/** The token, by the command that the wizard shows. */
export async function tokenOf(page: Page, platform: PlatformProcess): Promise<string> {
  const command = await page.getByRole('group', { name: 'How to get the token' }).locator('code').textContent()
  return (await platform.command(command ?? '')).trim()
}

/** Answers every step before one, or what comes before the password. */
export async function fillUpTo(page: Page, step: 'Administrator' | 'One-time token'): Promise<void> {
  await next(page)
  await field(page, 'Name of the platform').fill('Acme Platform')
  await next(page)
  await field(page, 'Public address').fill('https://platform.example.com')
  await next(page)
  await field(page, 'User name').fill(username)
  await field(page, 'E-mail').fill(`${username}@example.com`)
  if (step === 'Administrator') return
  await field(page, 'Password').fill(password)
  await field(page, 'Password, once more').fill(password)
  await next(page)
  await heading(page, step).waitFor()
}
