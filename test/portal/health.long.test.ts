import { expect } from 'vitest'
import { button, heading, row } from '../support/portal/locators.ts'
import { waitForPage } from '../support/portal/open.ts'
import { advanceSeconds, advanceUntil, openWithStoppedClock, requestsDuring } from '../support/portal/requests.ts'
import { test } from '../support/portal/shared.ts'

const check = (name: string, status: string, tag: string, source: string, description: string) => ({
  name,
  status,
  tags: [tag],
  source,
  durationMs: 4.2,
  checkedAt: new Date().toISOString(),
  description,
})

const unhealthy = {
  status: 'unavailable',
  aggregate: 'Unhealthy',
  checks: [
    check('queue', 'Degraded', 'degradable', 'module:hello', 'It is slow.'),
    check('mirror', 'Healthy', 'informational', 'platform', 'As it should be.'),
    check('database', 'Unhealthy', 'critical', 'platform', 'The store does not answer'),
  ],
}

test('shows each check with tags and source; the worst first', async ({ open, api: _isSetUp }) => {
  const page = await open('/health', { allow: [/^response 503 GET \/health\/ready$/] })
  for (const text of ['Healthy', 'critical', 'platform', 'The store is available'])
    await row(page, 'database').getByText(text).waitFor()
  await heading(page, 'Tags', 2).waitFor()
  await page.route('**/health/ready', (route) => route.fulfill({ status: 503, json: unhealthy }))
  await page.reload()
  await waitForPage(page)
  await heading(page, /./).getByText('Unhealthy').waitFor()
  const rows = await page.getByRole('table').locator('tbody tr').allInnerTexts()
  expect(rows.map((text) => /database|queue|mirror/.exec(text)?.[0])).toEqual(['database', 'queue', 'mirror'])
})

test('keeps the last result when a check fails', async ({ open, api: _isSetUp }) => {
  const page = await open('/health', { allow: [/^response 503 GET \/health\/ready$/] })
  await row(page, 'database').waitFor()
  await page.clock.install()
  const json = { error: 'database_unavailable', message: 'Not now.', traceId: 'trace-4711' }
  await page.route('**/health/ready', (route) => route.fulfill({ status: 503, json }))
  await button(page, 'Check now').click()
  const alert = page.getByRole('alert').filter({ hasText: 'Not now.' })
  await advanceUntil(page, () => alert.getByText('trace-4711').isVisible())
  await row(page, 'database').waitFor()
  await page.unroute('**/health/ready')
  await button(alert, 'Try again').click()
  await alert.waitFor({ state: 'detached' })
})

test('polls every ten seconds', async ({ newPage, api: _isSetUp }) => {
  const page = await openWithStoppedClock(await newPage(), '/health')
  const sent = await requestsDuring(page, () => advanceSeconds(page, 60))
  const count = sent.filter((request) => request === 'GET /health/ready').length
  expect(count).toBeGreaterThanOrEqual(4)
  expect(count).toBeLessThanOrEqual(6)
})
