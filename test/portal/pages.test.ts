import type { Page } from 'playwright-core'
import { expect } from 'vitest'
import { isLong } from '../support/long.ts'
import { appearanceErrors, focusErrors } from '../support/portal/accessibility.ts'
import { waitForPage } from '../support/portal/open.ts'
import { apiReference, openState, pages, pathOf, type PortalPage, publicPages } from '../support/portal/pages.ts'
import { setWidth, widths } from '../support/portal/screenshot.ts'
import { testAsAdministrator as test } from '../support/portal/test.ts'

/**
 * Checks every page for page errors (see page-errors.ts), its title and heading, accessibility (axe) and overflow. Long
 * runs also check keyboard focus, dialogs, menus and tabs, in both widths and themes.
 */

const testedPages = pages.filter(({ isVariant }) => isLong || !isVariant)

async function titleErrors(page: Page, { heading }: PortalPage): Promise<string[]> {
  const errors: string[] = []
  const headingCount = await page.locator('h1').count()
  if (headingCount !== 1) errors.push(`has ${headingCount} h1 headings`)
  const title = await page.title()
  const isTitled = typeof heading === 'string' ? title.startsWith(`${heading} · `) : heading.test(title)
  if (!isTitled || !title.includes(' · ')) errors.push(`has the title ${title}`)
  return errors
}

/** Returns an error if Tab and Enter do not skip the navigation. Skips pages with an open dialog or a script editor. */
async function skipLinkErrors(page: Page): Promise<string[]> {
  if (await page.getByRole('dialog').isVisible()) return []
  if (await page.getByRole('textbox', { name: 'Script' }).isVisible()) return []
  await page.keyboard.press('Tab')
  await page.keyboard.press('Enter')
  const focusedElement = await page.evaluate(() => (globalThis as any).document.activeElement.localName)
  return focusedElement === 'main' ? [] : [`Tab and Enter focus: ${focusedElement}`]
}

async function stateErrors(page: Page, { name, states = [] }: PortalPage): Promise<string[]> {
  // Without the fragment of the skip link: a change of the fragment alone does not load the page.
  const { pathname, search } = new URL(page.url())
  const errors: string[] = []
  for (const state of states) {
    await setWidth(page, state.isNarrow ? 360 : 1280)
    await page.goto(pathname + search)
    await waitForPage(page)
    await openState(page, state)
    errors.push(...(await appearanceErrors(page, `${name}-${state.name}`, state.isNarrow ? [360] : widths)))
  }
  return errors
}

test('the API reference finds operations by a property and sends requests, changes only when confirmed', async ({
  open,
}) => {
  const page = await open('/docs')
  const find = async (text: string) => {
    await page.getByRole('searchbox').fill(text)
    await expect.poll(() => page.locator('article:visible').count()).toBe(1)
    await page.getByRole('button', { name: /^Try it/ }).click()
  }
  await page.keyboard.press('/')
  await find('requireApproval createEnrollmentKey')
  await page.getByRole('button', { name: 'Send POST' }).click()
  expect(await page.locator('.warning :invalid').count()).toBe(1)
  expect(await page.locator('form:visible .output').innerText()).toBe('')

  await find('navigationTag')
  await page.getByRole('button', { name: 'Send GET' }).click()
  await page
    .locator('.output')
    .filter({ hasText: /^200 OK.*"unreadCount"/s })
    .waitFor()
  // axe takes long on all operations at once.
  await page.locator('article[hidden]').evaluateAll((articles) => articles.forEach((article: any) => article.remove()))
  expect(await appearanceErrors(page, 'docs-request')).toEqual([])
})

// In short runs, only the test above checks the API reference.
test.for(isLong ? [...publicPages, apiReference] : publicPages)(
  '$name is accessible and responsive',
  async (tested, { open, api: _isSetUp }) => {
    const page = await open(String(tested.path), { as: 'anonymous', allow: tested.allow ?? [] })
    expect([
      ...(await titleErrors(page, tested)),
      ...(await appearanceErrors(page, tested.name)),
      ...(isLong ? await focusErrors(page) : []),
    ]).toEqual([])
  },
)

test.for(testedPages)('$name is accessible and responsive', async (tested, { visit, seed }) => {
  const page = await visit(pathOf(tested, seed), { allow: tested.allow ?? [], width: isLong ? 1280 : 360 })
  const errors = isLong && !tested.isStandalone ? await skipLinkErrors(page) : []
  errors.push(...(await titleErrors(page, tested)), ...(await appearanceErrors(page, tested.name)))
  if (isLong) errors.push(...(await focusErrors(page)), ...(await stateErrors(page, tested)))
  expect(errors).toEqual([])
})
