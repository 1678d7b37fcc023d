import type { Page } from 'playwright-core'
import { expect } from 'vitest'
import { settled } from '../support/portal/open.ts'
import { pages, pathOf } from '../support/portal/pages.ts'
import { asAdministrator as test } from '../support/portal/shared.ts'
import { passSeconds, passUntil, requestsDuring, stopClock } from '../support/portal/traffic.ts'
import { setVisible } from '../support/portal/visibility.ts'

/** What the portal asks the platform while nobody touches it. Time is the browser's, and the tests move it. */

const summary = 'GET /api/v1/portal/summary'

async function openStopped(page: Page, path: string): Promise<Page> {
  await page.clock.install()
  await page.goto(path)
  await settled(page)
  await stopClock(page)
  return page
}

const asked = (page: Page, seconds: number) => requestsDuring(page, () => passSeconds(page, seconds))

/** How often the numbers were asked for. */
const times = (requests: readonly string[]): number => requests.filter((request) => request === summary).length

/** How often each thing was asked for. */
const counts = (requests: readonly string[]) =>
  requests.reduce((counts, request) => counts.set(request, (counts.get(request) ?? 0) + 1), new Map<string, number>())

// A module's page is the module's own; others are pages of the list a second time.
const left = new Set([
  'module-page',
  'not-found',
  'clusters-offline',
  'new-job-there',
  'new-job-again',
  'account-tokens',
])
const watched = pages.filter(({ name }) => !left.has(name))

test.for(watched)(
  '$name asks for nothing more often than every two seconds, and goes on asking for its numbers',
  async (it, { newPage, seed }) => {
    const page = await openStopped(await newPage(), pathOf(it, seed))
    // A second of the page's clock may pass before it has worked on an answer: it asks a little less often than it means to.
    const requests = counts(await asked(page, 60))
    const often = [...requests].filter(([, times]) => times > 30)
    expect(often).toEqual([])
    expect(requests.get(summary)).toBeGreaterThanOrEqual(8)
    expect(requests.get(summary)).toBeLessThanOrEqual(20)
  },
)

test('a tab in the background asks for nothing, and for the news when one comes back to it', async ({
  newPage,
  seed,
}) => {
  for (const it of watched) {
    const page = await openStopped(await newPage(), pathOf(it, seed))
    await setVisible(page, false)
    // What was asked before is answered, and may lead to a question.
    await passSeconds(page, 1)
    expect([it.name, await asked(page, 60)]).toEqual([it.name, []])
    const back = await requestsDuring(page, async () => {
      let isAsked = false
      page.on('request', (request) => (isAsked ||= request.url().endsWith(summary.slice('GET '.length))))
      await setVisible(page, true)
      await passUntil(page, async () => isAsked)
      await passSeconds(page, 1)
    })
    expect(back, it.name).toContain(summary)
    expect(back.length, it.name).toBeLessThanOrEqual(12)
    await page.context().close()
  }
})

test('a platform that fails is asked less often, and its news are there soon after it is back', async ({
  newPage,
  api: _isSetUp,
}) => {
  const page = await openStopped(await newPage({ allow: [/^answer 503 /] }), '/dashboard')
  await page.route('**/api/**', (route) =>
    route.fulfill({ status: 503, json: { error: 'database_unavailable', message: 'Not now.', traceId: '0' } }),
  )
  const perTwoMinutes = [times(await asked(page, 120)), times(await asked(page, 120))]
  // Thirty while it answers.
  expect(Math.max(...perTwoMinutes)).toBeLessThanOrEqual(15)
  expect(Math.min(...perTwoMinutes)).toBeGreaterThan(0)
  await page.unroute('**/api/**')
  expect(times(await asked(page, 60))).toBeGreaterThan(0)
})
