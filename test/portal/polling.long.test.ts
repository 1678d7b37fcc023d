import type { Page } from 'playwright-core'
import { expect } from 'vitest'
import { pages, pathOf } from '../support/portal/pages.ts'
import {
  advanceSeconds,
  advanceUntil,
  openWithStoppedClock,
  requestsDuring,
  setVisible,
} from '../support/portal/requests.ts'
import { testAsAdministrator as test } from '../support/portal/shared.ts'

const summary = 'GET /api/v1/portal/summary'

const requestsIn = (page: Page, seconds: number) => requestsDuring(page, () => advanceSeconds(page, seconds))
const summaries = (requests: readonly string[]): number => requests.filter((request) => request === summary).length

// Modules implement their own pages. Variants show the same pages with other data.
const skipped = new Set(['module-page', 'not-found', 'clusters-offline', 'new-job-on-cluster', 'new-job-again'])
const tested = pages.filter(({ name }) => !skipped.has(name) && name !== 'account-tokens')

test.for(tested)('$name sends each request at most every two seconds', async (it, { newPage, seed }) => {
  const page = await openWithStoppedClock(await newPage(), pathOf(it, seed))
  const requests = await requestsIn(page, 60)
  const tooOften = requests.filter((each) => requests.filter((other) => other === each).length > 30)
  expect(tooOften).toEqual([])
  // The page may need a second of its clock to process a response.
  expect(summaries(requests)).toBeGreaterThanOrEqual(8)
  expect(summaries(requests)).toBeLessThanOrEqual(20)
})

test('a hidden tab sends nothing and refreshes when it becomes visible', async ({ newPage, seed }) => {
  for (const it of tested) {
    const page = await openWithStoppedClock(await newPage(), pathOf(it, seed))
    await setVisible(page, false)
    // Pending responses may cause one more request.
    await advanceSeconds(page, 1)
    expect([it.name, await requestsIn(page, 60)]).toEqual([it.name, []])
    const sent = await requestsDuring(page, async () => {
      let isSent = false
      page.on('request', (request) => (isSent ||= request.url().endsWith(summary.slice('GET '.length))))
      await setVisible(page, true)
      await advanceUntil(page, async () => isSent)
      await advanceSeconds(page, 1)
    })
    expect(sent, it.name).toContain(summary)
    expect(sent.length, it.name).toBeLessThanOrEqual(12)
    await page.context().close()
  }
})

test('polls a failing platform less often and recovers', async ({ newPage, api: _isSetUp }) => {
  const page = await openWithStoppedClock(await newPage({ allow: [/^response 503 /] }), '/dashboard')
  const json = { error: 'database_unavailable', message: 'Not now.', traceId: '0' }
  await page.route('**/api/**', (route) => route.fulfill({ status: 503, json }))
  const counts = [summaries(await requestsIn(page, 120)), summaries(await requestsIn(page, 120))]
  // A healthy platform gets 30.
  expect(Math.max(...counts)).toBeLessThanOrEqual(15)
  expect(Math.min(...counts)).toBeGreaterThan(0)
  await page.unroute('**/api/**')
  expect(summaries(await requestsIn(page, 60))).toBeGreaterThan(0)
})
