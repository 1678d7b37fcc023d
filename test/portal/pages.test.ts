import type { Page } from 'playwright-core'
import { expect } from 'vitest'
import { isLong } from '../support/long.ts'
import { appearanceErrors, tabStops } from '../support/portal/accessibility.ts'
import { waitForPage } from '../support/portal/open.ts'
import { openState, pathOf, type PortalPage, publicPages, testedPages } from '../support/portal/pages.ts'
import { setWidth, widths } from '../support/portal/screenshot.ts'
import { testAsAdministrator as test } from '../support/portal/shared.ts'

/**
 * Every page, dialog and menu: no page errors (see page-errors.ts), axe, overflow, title, heading and keyboard, in both widths and themes.
 * Short runs check each page once and one state of each role.
 */

async function titleErrors(page: Page, { heading }: PortalPage): Promise<string[]> {
  const errors: string[] = []
  const headings = await page.locator('h1').count()
  if (headings !== 1) errors.push(`has ${headings} h1 headings`)
  const title = await page.title()
  const isTitled = typeof heading === 'string' ? title.startsWith(`${heading} · `) : heading.test(title)
  if (!isTitled || !title.includes(' · ')) errors.push(`has the title ${title}`)
  return errors
}

/** A freshly opened page offers to skip the navigation. A modal dialog keeps the focus. */
async function skipLinkErrors(page: Page): Promise<string[]> {
  if (await page.getByRole('dialog').isVisible()) return []
  await page.keyboard.press('Tab')
  await page.keyboard.press('Enter')
  const focused = await page.evaluate(() => (globalThis as any).document.activeElement.localName)
  return focused === 'main' ? [] : [`Tab and Enter focus: ${focused}`]
}

/** The shell is the same on all pages; short runs check it once. */
const skipsShell = ({ name, isStandalone }: PortalPage) => !isLong && !isStandalone && name !== 'dashboard'

async function focusErrors(page: Page, from?: string): Promise<string[]> {
  const stops = await tabStops(page, 60, (await page.getByRole('dialog').isVisible()) ? 'body' : from)
  const errors = stops.filter(({ hasVisibleFocus }) => !hasVisibleFocus).map(({ element }) => `no focus at: ${element}`)
  return stops.length === 0 ? ['Tab reaches nothing'] : errors
}

const sampledStates = new Set(
  ['dialog', 'menu', 'tabpanel', 'group'].map((each) =>
    testedPages.flatMap(({ states = [] }) => states).find(({ role = 'dialog' }) => role === each),
  ),
)

async function stateErrors(page: Page, { name, states = [] }: PortalPage): Promise<string[]> {
  // Without the fragment of the skip link: a change of the fragment alone does not load the page.
  const { pathname, search } = new URL(page.url())
  const errors: string[] = []
  for (const state of isLong ? states : states.filter((state) => sampledStates.has(state))) {
    await setWidth(page, state.isNarrow ? 360 : 1280)
    await page.goto(pathname + search)
    await waitForPage(page)
    await openState(page, state)
    errors.push(...(await appearanceErrors(page, `${name}-${state.name}`, state.isNarrow ? [360] : widths)))
  }
  return errors
}

test.for(publicPages)('$name is accessible and responsive', async (it, { open, api: _isSetUp }) => {
  const page = await open(String(it.path), { as: 'anonymous', allow: it.allow ?? [] })
  expect([
    ...(await titleErrors(page, it)),
    ...(await appearanceErrors(page, it.name)),
    ...(await focusErrors(page)),
  ]).toEqual([])
})

test.for(testedPages)('$name is accessible and responsive', async (it, { visit, seed }) => {
  const page = await visit(pathOf(it, seed), { allow: it.allow ?? [] })
  expect([
    ...(it.isStandalone ? [] : await skipLinkErrors(page)),
    ...(await titleErrors(page, it)),
    ...(await appearanceErrors(page, it.name)),
    ...(await focusErrors(page, skipsShell(it) ? 'main' : 'body')),
    ...(await stateErrors(page, it)),
  ]).toEqual([])
})
