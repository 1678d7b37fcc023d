import type { Locator, Page } from 'playwright-core'

type Scope = Page | Locator

export const heading = (page: Page, name: string | RegExp, level = 1) => page.getByRole('heading', { level, name })
export const field = (scope: Scope, label: string) => scope.getByLabel(label, { exact: true })
export const button = (scope: Scope, name: string | RegExp) => scope.getByRole('button', { name, exact: true })
export const link = (scope: Scope, name: string | RegExp) => scope.getByRole('link', { name, exact: true })
export const row = (page: Page, text: string | RegExp) => page.getByRole('row').filter({ hasText: text })
export const mainLink = (page: Page, name: string) =>
  page.getByRole('navigation', { name: 'Main' }).getByRole('link', { name })

/** Excludes toasts, which also have the role `dialog`, with `aria-modal=false`. */
export const dialog = (page: Page, name?: string | RegExp): Locator =>
  page.getByRole('dialog', name === undefined ? {} : { name }).and(page.locator(':not([aria-modal=false])'))

/** Opens the registration page from the list of clusters, whose search field is also called "Name". */
export async function openRegistration(page: Page): Promise<void> {
  await link(page, 'Register cluster').first().click()
  await heading(page, 'Register a cluster').waitFor()
}

export const relayCommand = (page: Page) =>
  page.getByRole('group', { name: 'Relay command' }).locator('code').innerText()

export const relayEnrolled = (page: Page) =>
  page.getByRole('status').filter({ hasText: 'The relay has enrolled.' }).waitFor()
