import type { Page } from 'playwright-core'
import { expect } from 'vitest'
import { pages, pathOf } from '../support/portal/pages.ts'
import {
  advanceSeconds,
  advanceUntil,
  failRequests,
  openWithStoppedClock,
  requestsDuring,
  setVisible,
} from '../support/portal/requests.ts'
import { testAsAdministrator as test } from '../support/portal/test.ts'

const requestsIn = (page: Page, seconds: number) => requestsDuring(page, () => advanceSeconds(page, seconds))
const countOf = (requests: readonly string[], pattern: RegExp) => requests.filter((each) => pattern.test(each)).length
const summary = /GET \/api\/v1\/portal\/summary$/

// Modules implement their own pages. Variants show the same pages with other data.
const polledVariants = new Set(['cluster-pending', 'job-running', 'batch-running'])
const polledPages = pages.filter(
  ({ name, isVariant }) => !['module-page', 'not-found'].includes(name) && (!isVariant || polledVariants.has(name)),
)

test.for(polledPages)('$name sends each request at most every two seconds', async (polled, { newPage, seed }) => {
  const page = await openWithStoppedClock(await newPage(), pathOf(polled, seed))
  const requests = await requestsIn(page, 60)
  const frequentRequests = requests.filter((each) => requests.filter((other) => other === each).length > 30)
  expect(frequentRequests).toEqual([])
  // The page may need a second of its clock to process a response.
  expect(countOf(requests, summary)).toBeGreaterThanOrEqual(8)
  expect(countOf(requests, summary)).toBeLessThanOrEqual(20)
})

test('a hidden tab sends nothing and refreshes when it becomes visible', async ({ newPage, seed }) => {
  for (const polledPage of polledPages) {
    const page = await openWithStoppedClock(await newPage(), pathOf(polledPage, seed))
    await setVisible(page, false)
    // Pending responses may cause one more request.
    await advanceSeconds(page, 1)
    expect([polledPage.name, await requestsIn(page, 60)]).toEqual([polledPage.name, []])
    const requests = await requestsDuring(page, async () => {
      let isSent = false
      page.on('request', (request) => (isSent ||= request.url().endsWith('/portal/summary')))
      await setVisible(page, true)
      await advanceUntil(page, async () => isSent)
      await advanceSeconds(page, 1)
    })
    expect(countOf(requests, summary), polledPage.name).toBeGreaterThan(0)
    expect(requests.length, polledPage.name).toBeLessThanOrEqual(12)
    await page.context().close()
  }
})

test('all widgets of the dashboard share one poll', async ({ newPage, seed: _seeded }) => {
  const page = await openWithStoppedClock(await newPage(), '/dashboard')
  const requests = await requestsIn(page, 120)
  expect(countOf(requests, summary)).toBeLessThanOrEqual(30)
  expect(countOf(requests, /history/)).toBe(2)
  expect(countOf(requests, /\/jobs\?/)).toBeGreaterThanOrEqual(8)
  expect(countOf(requests, /\/jobs\?/)).toBeLessThanOrEqual(12)
  expect(countOf(requests, /\/clusters\?/)).toBeLessThanOrEqual(4)
  expect(requests.filter((each) => !/summary|history|\/jobs\?|\/clusters\?/.test(each))).toEqual([])
})

test('the health page polls every ten seconds', async ({ newPage, api: _isSetUp }) => {
  const page = await openWithStoppedClock(await newPage(), '/health')
  const count = countOf(await requestsIn(page, 60), /GET \/health\/ready$/)
  expect(count).toBeGreaterThanOrEqual(4)
  expect(count).toBeLessThanOrEqual(6)
})

test('polls a failing platform less often and recovers', async ({ newPage, api: _isSetUp }) => {
  const page = await openWithStoppedClock(await newPage({ allow: [/^response 503 /] }), '/dashboard')
  const recover = await failRequests(page, '**/api/**')
  const counts = [await requestsIn(page, 120), await requestsIn(page, 120)].map((each) => countOf(each, summary))
  // A healthy platform receives 30 requests.
  expect(Math.max(...counts)).toBeLessThanOrEqual(15)
  expect(Math.min(...counts)).toBeGreaterThan(0)
  await recover()
  expect(countOf(await requestsIn(page, 60), summary)).toBeGreaterThan(0)
})
