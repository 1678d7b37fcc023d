import type { Page } from 'playwright-core'
import { expect } from 'vitest'
import { settled } from '../support/portal/open.ts'
import { seedFleet } from '../support/portal/fleet.ts'
import { reachingOut } from '../support/portal/layout.ts'
import { test as base } from '../support/portal/shared.ts'
import { passUntil, requestsDuring } from '../support/portal/traffic.ts'

/** The list of a large organisation: 10,000 clusters, `cluster-000000` the oldest and last. */

const count = 10_000

const test = base.extend('fleet', { scope: 'file' }, ({ shared, api }) => seedFleet(shared, api, count))

const listed = (requests: readonly string[]): string[] =>
  requests.filter((request) => request.startsWith('GET /api/v1/clusters?'))

const rows = (page: Page) => page.getByRole('row').filter({ has: page.getByRole('link') })

const toEnd = (page: Page) => page.evaluate('window.scrollTo(0, document.documentElement.scrollHeight)')

/** Scrolls so that a row, counted from 0, is one of the first in sight. */
async function toRow(page: Page, row: number): Promise<void> {
  const { height = 0 } = (await rows(page).first().boundingBox()) ?? {}
  await page.evaluate(`window.scrollTo(0, ${Math.round(row * height)})`)
}

const scrolledPixels = (page: Page): Promise<number> => page.evaluate('window.scrollY')

test('10,000 clusters scroll from the first to the last: few elements, few requests', async ({
  open,
  fleet: _fleet,
}) => {
  const page = await open('/clusters')
  await page.getByRole('status').filter({ hasText: '10,000 clusters' }).waitFor()
  await page.getByRole('link', { name: 'cluster-009999' }).waitFor()
  expect(await page.getByRole('table', { name: 'Clusters' }).getAttribute('aria-rowcount')).toBe('10001')

  const asked = await requestsDuring(page, async () => {
    await toEnd(page)
    await page.getByRole('link', { name: 'cluster-000000' }).waitFor()
  })
  expect(listed(asked).length).toBeLessThanOrEqual(3)
  expect(listed(asked)).toContainEqual(expect.stringContaining('page=100&'))
  expect(await page.getByRole('row').filter({ hasText: 'cluster-000000' }).getAttribute('aria-rowindex')).toBe('10001')
  expect(await page.evaluate('document.querySelectorAll("*").length')).toBeLessThan(1500)
})

test('what is scrolled past quickly is not asked for', async ({ open, fleet: _fleet }) => {
  const page = await open('/clusters')
  await rows(page).first().waitFor()
  const asked = await requestsDuring(page, async () => {
    // 40 screens, as fast as the browser draws them.
    await page.evaluate(`(async () => {
      for (let at = 0; at < 40; at++) {
        scrollBy(0, 5000)
        await new Promise(requestAnimationFrame)
      }
    })()`)
    await settled(page)
    await expect.poll(() => rows(page).count()).toBeGreaterThan(10)
  })
  expect(listed(asked).length).toBeLessThan(8)
})

test('every row comes while one scrolls on, none is missed or shown twice', async ({ open, fleet: _fleet }) => {
  const page = await open('/clusters')
  const seen = new Set<string>()
  for (let row = 0; row < 320; row += 10) {
    await settled(page)
    for (const name of await rows(page).getByRole('link').allTextContents()) seen.add(name)
    await page.mouse.wheel(0, 440)
  }
  const expected = Array.from({ length: 300 }, (_, index) => `cluster-${String(9999 - index).padStart(6, '0')}`)
  expect(expected.filter((name) => !seen.has(name))).toEqual([])
})

test('the keyboard goes from row to row, to the end and back, and opens one', async ({ open, fleet: _fleet }) => {
  const page = await open('/clusters')
  const focused = () => page.evaluate('document.activeElement.textContent')
  await page.getByRole('link', { name: 'cluster-009999' }).focus()
  await page.keyboard.press('ArrowDown')
  await expect.poll(focused).toBe('cluster-009998')
  await page.keyboard.press('PageDown')
  await expect.poll(focused).toBe('cluster-009988')
  await page.keyboard.press('End')
  await page.getByRole('link', { name: 'cluster-000000' }).waitFor()
  await page.keyboard.press('ArrowUp')
  await expect.poll(focused).toBe('cluster-000001')
  await page.keyboard.press('Home')
  await expect.poll(focused).toBe('cluster-009999')
  await page.keyboard.press('Enter')
  await page.getByRole('heading', { level: 1, name: 'cluster-009999' }).waitFor()
})

test('whoever comes back from a cluster finds the list where it was', async ({ open, fleet: _fleet }) => {
  const page = await open('/clusters')
  await rows(page).first().waitFor()
  await toRow(page, 2500)
  await expect.poll(() => rows(page).count()).toBeGreaterThan(10)
  const before = await scrolledPixels(page)
  await rows(page).nth(15).getByRole('link').click()
  await page.waitForURL('**/clusters/clus_*')
  await settled(page)
  await page.goBack()
  await expect.poll(() => rows(page).count()).toBeGreaterThan(10)
  await expect.poll(() => scrolledPixels(page)).toBe(before)
})

test('a cluster that is registered meanwhile does not move what is read', async ({ newPage, api, fleet: _fleet }) => {
  const page = await newPage()
  await page.clock.install()
  await page.goto('/clusters')
  await rows(page).first().waitFor()
  await toRow(page, 450)
  await page.getByRole('link', { name: 'cluster-009540' }).waitFor()
  const place = async () => (await page.getByRole('link', { name: 'cluster-009540' }).boundingBox())?.y
  const before = await place()
  await api.newCluster()
  const isThere = page.locator(`table[aria-rowcount="${count + 2}"], [role=table][aria-rowcount="${count + 2}"]`)
  await passUntil(page, () => isThere.isVisible())
  await settled(page)
  expect(await page.getByRole('row').filter({ hasText: 'cluster-009540' }).getAttribute('aria-rowindex')).toBe('462')
  expect(await place()).toBe(before)
})

test('only pages in view are looked at again', async ({ newPage, fleet: _fleet }) => {
  const page = await newPage()
  await page.clock.install()
  await page.goto('/clusters')
  await rows(page).first().waitFor()
  await toEnd(page)
  await page.clock.runFor(1000)
  await page.getByRole('link', { name: 'cluster-000000' }).waitFor()
  const asked = await requestsDuring(page, async () => {
    for (let second = 0; second < 35; second++) await page.clock.runFor(1000)
  })
  expect(listed(asked)).toContainEqual(expect.stringMatching(/[?&]page=100&/))
  expect(listed(asked).filter((request) => !/[?&]page=10[01]&/.test(request))).toEqual([])
  expect(listed(asked).length).toBeLessThanOrEqual(8)
})

test('a page that fails says so, and comes when it is tried again', async ({ open, fleet: _fleet }) => {
  const page = await open('/clusters', { allow: [/^answer 500 GET \/api\/v1\/clusters\?/] })
  await rows(page).first().waitFor()
  await page.route('**/api/v1/clusters?*page=50&*', (route) =>
    route.fulfill({
      status: 500,
      contentType: 'application/json',
      body: JSON.stringify({ error: 'internal_error', message: 'It broke.', traceId: 'a'.repeat(32) }),
    }),
  )
  await toRow(page, 4950)
  await page.getByText('a'.repeat(32)).waitFor()
  await page.unroute('**/api/v1/clusters?*page=50&*')
  await page.getByRole('button', { name: 'Try again' }).click()
  await expect.poll(() => rows(page).count()).toBeGreaterThan(10)
  expect(await page.getByRole('alert').count()).toBe(0)
})

test('on a narrow screen rows have two lines, and nothing reaches out', async ({ open, fleet: _fleet }) => {
  const page = await open('/clusters', { width: 360 })
  const row = page.getByRole('row').filter({ hasText: 'cluster-009990' })
  await row.scrollIntoViewIfNeeded()
  const { height = 0 } = (await row.boundingBox()) ?? {}
  expect(height).toBeGreaterThan(55)
  expect(await reachingOut(page)).toEqual([])
  await toEnd(page)
  await page.getByRole('link', { name: 'cluster-000000' }).waitFor()
})
