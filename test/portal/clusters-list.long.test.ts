import type { Page } from 'playwright-core'
import { expect } from 'vitest'
import { seedFleet } from '../support/portal/fleet.ts'
import { button, heading, link, row } from '../support/portal/locators.ts'
import { waitForPage } from '../support/portal/open.ts'
import { advanceUntil, failRequests, requestsDuring } from '../support/portal/requests.ts'
import { test as inTenant } from '../support/portal/test.ts'

/** 10,000 clusters, newest first: `cluster-000000` is the last row. */
const count = 10_000

const test = inTenant.extend('fleet', { scope: 'file' }, ({ shared, api }) => seedFleet(shared, api, count))

const listRequests = (requests: readonly string[]): string[] =>
  requests.filter((request) => request.startsWith('GET /api/v1/clusters?'))

const rows = (page: Page) => page.getByRole('row').filter({ has: page.getByRole('link') })
const rowsLoaded = (page: Page) => expect.poll(() => rows(page).count()).toBeGreaterThan(10)
const scrollToEnd = (page: Page) => page.evaluate('window.scrollTo(0, document.documentElement.scrollHeight)')

async function scrollToRow(page: Page, row: number): Promise<void> {
  const { height = 0 } = (await rows(page).first().boundingBox()) ?? {}
  await page.evaluate(`window.scrollTo(0, ${Math.round(row * height)})`)
}

test('10,000 clusters scroll with few elements and few requests', async ({ open, fleet: _fleet }) => {
  const page = await open('/clusters')
  await page.getByRole('status').filter({ hasText: '10,000 clusters' }).waitFor()
  await link(page, 'cluster-009999').waitFor()
  expect(await page.getByRole('table', { name: 'Clusters' }).getAttribute('aria-rowcount')).toBe('10001')
  const sentRequests = await requestsDuring(page, async () => {
    await scrollToEnd(page)
    await link(page, 'cluster-000000').waitFor()
  })
  expect(listRequests(sentRequests).length).toBeLessThanOrEqual(3)
  expect(listRequests(sentRequests)).toContainEqual(expect.stringContaining('page=100&'))
  expect(await row(page, 'cluster-000000').getAttribute('aria-rowindex')).toBe('10001')
  expect(await page.evaluate('document.querySelectorAll("*").length')).toBeLessThan(1500)
})

test('rows that scroll past quickly are not requested', async ({ open, fleet: _fleet }) => {
  const page = await open('/clusters')
  await rows(page).first().waitFor()
  const sentRequests = await requestsDuring(page, async () => {
    await page.evaluate(`(async () => {
      for (let at = 0; at < 40; at++) {
        scrollBy(0, 5000)
        await new Promise(requestAnimationFrame)
      }
    })()`)
    await waitForPage(page)
    await rowsLoaded(page)
  })
  expect(listRequests(sentRequests).length).toBeLessThan(8)
})

test('slow scrolling shows every row once', async ({ open, fleet: _fleet }) => {
  const page = await open('/clusters')
  const shownNames = new Set<string>()
  for (let row = 0; row < 320; row += 10) {
    await waitForPage(page)
    for (const name of await rows(page).getByRole('link').allTextContents()) shownNames.add(name)
    await page.mouse.wheel(0, 440)
  }
  const expected = Array.from({ length: 300 }, (_, index) => `cluster-${String(9999 - index).padStart(6, '0')}`)
  expect(expected.filter((name) => !shownNames.has(name))).toEqual([])
})

test('the keyboard moves between rows and opens one', async ({ open, fleet: _fleet }) => {
  const page = await open('/clusters')
  const readFocusedText = () => page.evaluate('document.activeElement.textContent')
  await link(page, 'cluster-009999').focus()
  await page.keyboard.press('ArrowDown')
  await expect.poll(readFocusedText).toBe('cluster-009998')
  await page.keyboard.press('PageDown')
  await expect.poll(readFocusedText).toBe('cluster-009988')
  await page.keyboard.press('End')
  await link(page, 'cluster-000000').waitFor()
  await page.keyboard.press('ArrowUp')
  await expect.poll(readFocusedText).toBe('cluster-000001')
  await page.keyboard.press('Home')
  await expect.poll(readFocusedText).toBe('cluster-009999')
  await page.keyboard.press('Enter')
  await heading(page, 'cluster-009999').waitFor()
})

test('going back restores the scroll position', async ({ open, fleet: _fleet }) => {
  const page = await open('/clusters')
  await rows(page).first().waitFor()
  await scrollToRow(page, 2500)
  await rowsLoaded(page)
  const scrollBefore = await page.evaluate('window.scrollY')
  await rows(page).nth(15).getByRole('link').click()
  await page.waitForURL('**/clusters/clus_*')
  await waitForPage(page)
  await page.goBack()
  await rowsLoaded(page)
  await expect.poll(() => page.evaluate('window.scrollY')).toBe(scrollBefore)
})

test('a new cluster does not move the visible rows', async ({ newPage, api, fleet: _fleet }) => {
  const page = await newPage()
  await page.clock.install()
  await page.goto('/clusters')
  await rows(page).first().waitFor()
  await scrollToRow(page, 450)
  await link(page, 'cluster-009540').waitFor()
  const readPosition = async () => (await link(page, 'cluster-009540').boundingBox())?.y
  const positionBefore = await readPosition()
  await api.newCluster()
  const updatedTable = page.locator(`table[aria-rowcount="${count + 2}"], [role=table][aria-rowcount="${count + 2}"]`)
  await advanceUntil(page, () => updatedTable.isVisible())
  await waitForPage(page)
  expect(await row(page, 'cluster-009540').getAttribute('aria-rowindex')).toBe('462')
  expect(await readPosition()).toBe(positionBefore)
})

test('polls visible pages only', async ({ newPage, fleet: _fleet }) => {
  const page = await newPage()
  await page.clock.install()
  await page.goto('/clusters')
  await rows(page).first().waitFor()
  await scrollToEnd(page)
  await page.clock.runFor(1000)
  await link(page, 'cluster-000000').waitFor()
  const sentRequests = await requestsDuring(page, async () => {
    for (let second = 0; second < 35; second++) await page.clock.runFor(1000)
  })
  expect(listRequests(sentRequests)).toContainEqual(expect.stringMatching(/[?&]page=100&/))
  expect(listRequests(sentRequests).filter((request) => !/[?&]page=10[01]&/.test(request))).toEqual([])
  expect(listRequests(sentRequests).length).toBeLessThanOrEqual(8)
})

test('a failed page shows its trace id and loads on retry', async ({ open, fleet: _fleet }) => {
  const page = await open('/clusters', { allow: [/^response 503 GET \/api\/v1\/clusters\?/] })
  await rows(page).first().waitFor()
  const recover = await failRequests(page, '**/api/v1/clusters?*page=50&*')
  await scrollToRow(page, 4950)
  await page.getByRole('alert').getByText('Details', { exact: true }).click()
  await page.getByText('trace-4711').waitFor()
  await recover()
  await button(page, 'Try again').click()
  await rowsLoaded(page)
  expect(await page.getByRole('alert').count()).toBe(0)
})

test('rows have two lines on a narrow screen', async ({ open, fleet: _fleet }) => {
  const page = await open('/clusters', { width: 360 })
  const { height = 0 } = (await rows(page).first().boundingBox()) ?? {}
  expect(height).toBeGreaterThan(55)
  await scrollToEnd(page)
  await link(page, 'cluster-000000').waitFor()
})
