import type { Page } from 'playwright-core'

/** The page's one heading of the first level, by its words. */
export const heading = (page: Page, name: string) => page.getByRole('heading', { level: 1, name })

/** The dialog over the page. What is told in passing is one as well, by its role; it says that it is not modal. */
export const dialog = (page: Page) => page.locator('[role=dialog]:not([aria-modal=false])')

/** The relay command that is shown. */
export const commandOf = (page: Page) => page.getByRole('group', { name: 'Relay command' }).locator('code').innerText()

/** Where it says that the relay is there. */
export const enrolled = (page: Page) => page.getByRole('status').filter({ hasText: 'The relay has enrolled.' })
