import type { Locator, Page } from 'playwright-core'
import { expect } from 'vitest'
import type { Platform } from '../conformance/support/platform.ts'
import { axe } from '../support/portal/axe.ts'
import { asAdministrator as test } from '../support/portal/shared.ts'
import { requestsDuring } from '../support/portal/traffic.ts'

/** Charts say what they draw to whoever does not see it, and in the user's own time. */

const widget = (page: Page, title: string): Locator => page.getByRole('region', { name: title, exact: true })
const button = (page: Page | Locator, name: string): Locator => page.getByRole('button', { name, exact: true })

const ends = async (api: Platform) =>
  (await (await api.admin).get('/api/v1/portal/history?hours=24')).body.points.reduce(
    (sum: number, { jobs }: any) => sum + jobs.completed,
    0,
  )

test('a chart can be asked by keyboard, and read as a table', async ({ open, api, seed: _seed }) => {
  const page = await open('/dashboard')
  const jobs = widget(page, 'Jobs over time')
  const slider = jobs.getByRole('slider')
  await expect.poll(() => slider.getAttribute('aria-valuetext')).toMatch(/: \d+ Completed, \d+ Cancelled, \d+ Failed$/)
  await slider.focus()
  await page.keyboard.press('Home')
  const first = await slider.getAttribute('aria-valuetext')
  expect(first).toMatch(/: 0 Completed/)
  await page.keyboard.press('ArrowRight')
  expect(await slider.getAttribute('aria-valuetext')).not.toBe(first)
  expect(await jobs.locator('figure').innerText()).toMatch(/Completed\s*0/)
  await page.keyboard.press('Escape')
  expect(await jobs.locator('figure').innerText()).not.toMatch(/Completed\s*0/)

  await button(jobs, 'Show as table').click()
  const table = jobs.getByRole('table', { name: 'Jobs over time' })
  expect(await table.getByRole('row').count()).toBe(97)
  const completed = await table.locator('tbody tr td:nth-of-type(1)').allInnerTexts()
  expect(completed.reduce((sum, text) => sum + Number(text), 0)).toBe(await ends(api))
  expect(await ends(api)).toBeGreaterThan(0)
  await axe(page)
})

test('the range of the charts is one for all, and part of the address', async ({ open, seed: _seed }) => {
  const page = await open('/dashboard?range=week')
  expect(await button(page, '7 d').getAttribute('aria-pressed')).toBe('true')
  const asked = await requestsDuring(page, async () => {
    await Promise.all([page.waitForResponse(/history\?hours=720/), button(page, '30 d').click()])
  })
  expect(asked.filter((request) => request.includes('history'))).toEqual(['GET /api/v1/portal/history?hours=720'])
  expect(new URL(page.url()).search).toBe('?range=month')
})

test('times of charts are those of the user', async ({ open, seed: _seed }) => {
  const texts = ['Asia/Tokyo', 'America/New_York'].map(async (timezone) => {
    const page = await open('/dashboard', { timezone })
    const slider = widget(page, 'Jobs over time').getByRole('slider')
    return slider.getAttribute('aria-valuetext')
  })
  const [tokyo, newYork] = await Promise.all(texts)
  expect(tokyo).not.toBe(newYork)
})
