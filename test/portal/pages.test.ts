import type { Page } from 'playwright-core'
import { expect } from 'vitest'
import { isLong } from '../support/long.ts'
import { tabStops } from '../support/portal/keyboard.ts'
import { settled } from '../support/portal/open.ts'
import { pathOf, type PortalPage, publicPages, setupPages, triedPages } from '../support/portal/pages.ts'
import { asAdministrator as test } from '../support/portal/shared.ts'
import { widen, widths } from '../support/portal/shot.ts'
import { faultsOfLook } from '../support/portal/sound.ts'
import { openState } from '../support/portal/states.ts'
import { test as onOwn } from '../support/portal/test.ts'

/**
 * Every page of the portal, and every dialog and other state that it can be brought to: quiet (see faults.ts), accessible, of the width
 * that it is given, with a title, a heading and a way for the keyboard; wide and narrow, light and dark. Where not all is tried, each page
 * is shown once, and each kind of state.
 */

async function faultsOfNames(page: Page, { heading }: PortalPage): Promise<string[]> {
  const found: string[] = []
  const headings = await page.locator('h1').allTextContents()
  if (headings.length !== 1) found.push(`has ${headings.length} headings of the first level`)
  const title = await page.title()
  const isTitled = typeof heading === 'string' ? title.startsWith(`${heading} · `) : heading.test(title)
  if (!isTitled || !title.includes(' · ')) found.push(`has the title ${title}`)
  return found
}

/** On a page that has just been opened: the keyboard comes past the navigation in two keys. Out of a dialog it does not come. */
async function faultsOfSkipping(page: Page): Promise<string[]> {
  if (await page.getByRole('dialog').isVisible()) return []
  await page.keyboard.press('Tab')
  await page.keyboard.press('Enter')
  const place = await page.evaluate(() => (globalThis as any).document.activeElement.localName)
  return place === 'main' ? [] : [`Tab and Enter lead to: ${place}`]
}

/** What is around a page is around all: where not all is tried, the keyboard goes through it once. */
const aroundIsKnown = ({ name, isAlone }: PortalPage) => !isLong && !isAlone && name !== 'dashboard'

/** One sees where the keyboard stands. Out of a dialog it does not come. */
async function faultsOfKeyboard(page: Page, from?: string): Promise<string[]> {
  const stops = await tabStops(page, 60, (await page.getByRole('dialog').isVisible()) ? 'body' : from)
  const found = stops.filter(({ isSeen }) => !isSeen).map(({ what }) => `the keyboard is not seen at: ${what}`)
  return stops.length === 0 ? ['the keyboard reaches nothing'] : found
}

/** Where not all is tried, the first state of each kind stands for the others: the long runs look at all of them. */
const standing = new Set(
  ['dialog', 'menu', 'tabpanel', 'group'].map((kind) =>
    triedPages.flatMap(({ states = [] }) => states).find(({ shows = 'dialog' }) => shows === kind),
  ),
)

/** Each on the page as it was opened. */
async function faultsOfStates(page: Page, { name, states = [] }: PortalPage): Promise<string[]> {
  // Without what the keyboard has added to it: another place on the same page is no other page.
  const { pathname, search } = new URL(page.url())
  const found: string[] = []
  for (const state of isLong ? states : states.filter((state) => standing.has(state))) {
    const inWidths = state.isNarrow ? ([360] as const) : widths
    await widen(page, state.isNarrow ? 360 : 1280)
    await page.goto(pathname + search)
    await settled(page)
    await openState(page, state)
    found.push(...(await faultsOfLook(page, `${name}-${state.name}`, inWidths)))
  }
  return found
}

onOwn.runIf(isLong).for(setupPages)('before setup: $name', async (it, { open }) => {
  const page = await open(String(it.path), { as: 'nobody', allow: it.allow ?? [] })
  expect([
    ...(await faultsOfNames(page, it)),
    ...(await faultsOfLook(page, it.name)),
    ...(await faultsOfKeyboard(page)),
  ]).toEqual([])
})

test.for(publicPages)('for everybody: $name', async (it, { open, api: _isSetUp }) => {
  const page = await open(String(it.path), { as: 'nobody', allow: it.allow ?? [] })
  expect([
    ...(await faultsOfNames(page, it)),
    ...(await faultsOfLook(page, it.name)),
    ...(await faultsOfKeyboard(page)),
  ]).toEqual([])
})

test.for(triedPages)('for an administrator: $name', async (it, { visit, seed }) => {
  const page = await visit(pathOf(it, seed), { allow: it.allow ?? [] })
  expect([
    ...(it.isAlone ? [] : await faultsOfSkipping(page)),
    ...(await faultsOfNames(page, it)),
    ...(await faultsOfLook(page, it.name)),
    ...(await faultsOfKeyboard(page, aroundIsKnown(it) ? 'main' : 'body')),
    ...(await faultsOfStates(page, it)),
  ]).toEqual([])
})
