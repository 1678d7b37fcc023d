import { expect } from 'vitest'
import { tabStops } from '../support/portal/keyboard.ts'
import { test } from '../support/portal/shared.ts'
import { faultsOfLook } from '../support/portal/sound.ts'

/** The API reference, which is no page of the portal but looks like one. */

const colours = () => {
  const { document, getComputedStyle }: any = globalThis
  const look = (selector: string, property: string) => getComputedStyle(document.querySelector(selector))[property]
  return [look('html', 'backgroundColor'), look('h1', 'color'), look('h1', 'fontFamily'), look('h1', 'fontSize')]
}

test('it is accessible and of the width that it is given, in both themes', async ({ open }) => {
  const page = await open('/docs', { as: 'nobody' })
  expect(await page.title()).toMatch(/^API reference · /)
  expect(await page.getByRole('heading', { level: 1 }).count()).toBe(1)
  expect(await faultsOfLook(page, 'docs')).toEqual([])
})

test('it has the colours and letters of the portal in both themes, its mark, and the way there', async ({
  open,
  api,
}) => {
  await api.admin
  const [reference, portal] = [await open('/docs'), await open('/health')]
  for (const colorScheme of ['light', 'dark'] as const) {
    await Promise.all([reference, portal].map((page) => page.emulateMedia({ colorScheme })))
    expect(await reference.evaluate(colours)).toEqual(await portal.evaluate(colours))
  }
  await reference.getByRole('link', { name: 'Back to the portal' }).click()
  await reference.getByRole('heading', { level: 1, name: 'Dashboard' }).waitFor()
})

test('a keyboard sees where it stands, and gets past the list of operations by its first key', async ({ open }) => {
  const page = await open('/docs', { as: 'nobody' })
  const stops = await tabStops(page, 12)
  expect(stops.filter(({ isSeen }) => !isSeen)).toEqual([])
  await page.reload()
  await page.keyboard.press('Tab')
  await page.keyboard.press('Enter')
  expect(await page.evaluate(() => (globalThis as any).document.activeElement.localName)).toBe('main')
})
