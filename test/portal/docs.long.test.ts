import { expect } from 'vitest'
import { appearanceErrors, tabStops } from '../support/portal/accessibility.ts'
import { heading, link } from '../support/portal/locators.ts'
import { test } from '../support/portal/shared.ts'

const styles = () => {
  const { document, getComputedStyle }: any = globalThis
  const style = (selector: string, property: string) => getComputedStyle(document.querySelector(selector))[property]
  return [style('html', 'backgroundColor'), style('h1', 'color'), style('h1', 'fontFamily'), style('h1', 'fontSize')]
}

test('the API reference is accessible and responsive', async ({ open }) => {
  const page = await open('/docs', { as: 'anonymous' })
  expect(await page.title()).toMatch(/^API reference · /)
  expect(await heading(page, /./).count()).toBe(1)
  expect(await appearanceErrors(page, 'docs')).toEqual([])
  const stops = await tabStops(page, 12)
  expect(stops.filter(({ hasVisibleFocus }) => !hasVisibleFocus)).toEqual([])
  await page.reload()
  await page.keyboard.press('Tab')
  await page.keyboard.press('Enter')
  expect(await page.evaluate(() => (globalThis as any).document.activeElement.localName)).toBe('main')
})

test('the API reference has the style of the portal and links to it', async ({ open, api }) => {
  await api.admin
  const [reference, portal] = [await open('/docs'), await open('/health')]
  for (const colorScheme of ['light', 'dark'] as const) {
    await Promise.all([reference, portal].map((page) => page.emulateMedia({ colorScheme })))
    expect(await reference.evaluate(styles)).toEqual(await portal.evaluate(styles))
  }
  await link(reference, 'Back to the portal').click()
  await heading(reference, 'Dashboard').waitFor()
})
