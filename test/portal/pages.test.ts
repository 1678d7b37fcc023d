import type { Page } from 'playwright-core'
import { expect } from 'vitest'
import { axeFindings } from '../support/portal/axe.ts'
import { tabStops } from '../support/portal/keyboard.ts'
import { reachingOut } from '../support/portal/layout.ts'
import { settled } from '../support/portal/open.ts'
import { pages, pathOf, type PortalPage, publicPages, setupPages } from '../support/portal/pages.ts'
import { lasting, seed } from '../support/portal/seed.ts'
import { inBothThemes, picture, type Width, widen, widths } from '../support/portal/shot.ts'
import { openState } from '../support/portal/states.ts'
import { test as base } from '../support/portal/test.ts'

/**
 * Every page of the portal, and every dialog and other state that it can be brought to: quiet (see faults.ts), accessible, of the width
 * that it is given, with a title, a heading and a way for the keyboard; wide and narrow, light and dark. Pictures of all are kept.
 */

const test = base.override('settings', lasting).extend('seed', { scope: 'file' }, ({ api }) => seed(api))

/** What is wrong with a page as it looks just now, in these widths and both themes: all of it, in lines. */
async function faultsOfLook(page: Page, name: string, inWidths: readonly Width[] = widths): Promise<string[]> {
  const found: string[] = []
  for (const width of inWidths) {
    await widen(page, width)
    found.push(...(await reachingOut(page)).map((what) => `${name} scrolls sideways at ${width} pixels: ${what}`))
    await inBothThemes(page, async (theme) => {
      found.push(...(await axeFindings(page)).map((what) => `${name}, ${theme}, ${width} pixels: ${what}`))
      await picture(page, `${name}-${theme}-${width}`)
    })
  }
  return found
}

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

/** On a page that is opened anew: one sees where the keyboard stands. */
async function faultsOfKeyboard(page: Page): Promise<string[]> {
  await page.reload()
  await settled(page)
  const stops = await tabStops(page)
  const found = stops.filter(({ isSeen }) => !isSeen).map(({ what }) => `the keyboard is not seen at: ${what}`)
  return stops.length === 0 ? ['the keyboard reaches nothing'] : found
}

/** Each on the page as it was opened. */
async function faultsOfStates(page: Page, { name, states = [] }: PortalPage): Promise<string[]> {
  // Without what the keyboard has added to it: another place on the same page is no other page.
  const { pathname, search } = new URL(page.url())
  const found: string[] = []
  for (const state of states) {
    const inWidths = state.isNarrow ? ([360] as const) : widths
    await widen(page, state.isNarrow ? 360 : 1280)
    await page.goto(pathname + search)
    await settled(page)
    await openState(page, state)
    found.push(...(await faultsOfLook(page, `${name}-${state.name}`, inWidths)))
  }
  return found
}

test.for(setupPages)('before setup: $name', async (it, { open }) => {
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

test.for(pages)('for an administrator: $name', async (it, { open, seed }) => {
  const page = await open(pathOf(it, seed), { allow: it.allow ?? [] })
  expect([
    ...(it.isAlone ? [] : await faultsOfSkipping(page)),
    ...(await faultsOfNames(page, it)),
    ...(await faultsOfLook(page, it.name)),
    ...(await faultsOfKeyboard(page)),
    ...(await faultsOfStates(page, it)),
  ]).toEqual([])
})
