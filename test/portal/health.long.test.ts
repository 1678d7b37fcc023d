import { expect } from 'vitest'
import { axe } from '../support/portal/axe.ts'
import { reachingOut } from '../support/portal/layout.ts'
import { test } from '../support/portal/shared.ts'
import { passSeconds, passUntil, requestsDuring, stopClock } from '../support/portal/traffic.ts'
import { settled } from '../support/portal/open.ts'

/** The health page shows what the platform says of itself, above all when that is bad. */

const check = (name: string, status: string, tag: string, source: string, description: string) => ({
  name,
  status,
  tags: [tag],
  source,
  durationMs: 4.2,
  checkedAt: new Date().toISOString(),
  description,
})

const bad = {
  status: 'unavailable',
  aggregate: 'Unhealthy',
  checks: [
    check('queue', 'Degraded', 'degradable', 'module:hello', 'It is slow.'),
    check('mirror', 'Healthy', 'informational', 'platform', 'As it should be.'),
    check('database', 'Unhealthy', 'critical', 'platform', 'The store does not answer'),
  ],
}

test('every check of the platform is shown, with its tags and its source', async ({ open, api: _isSetUp }) => {
  const page = await open('/health')
  const row = page.getByRole('row').filter({ hasText: 'database' })
  for (const text of ['Healthy', 'critical', 'platform', 'The store answers']) await row.getByText(text).waitFor()
  await page.getByRole('heading', { name: 'What the tags mean' }).waitFor()
  await axe(page)
})

test('a platform that is not well says so with 503, and the page shows it all the same, the worst first', async ({
  open,
  api: _isSetUp,
}) => {
  const page = await open('/dashboard', { allow: [/^answer 503 GET \/health\/ready$/], width: 360 })
  await page.route('**/health/ready', (route) => route.fulfill({ status: 503, json: bad }))
  await page.goto('/health')
  await settled(page)
  await page.getByRole('heading', { level: 1 }).getByText('Unhealthy').waitFor()
  const rows = await page.getByRole('table').locator('tbody tr').allInnerTexts()
  expect(rows.map((text) => /database|queue|mirror/.exec(text)?.[0])).toEqual(['database', 'queue', 'mirror'])
  expect(await reachingOut(page)).toEqual([])
  await axe(page)
})

test('a platform that does not answer is told of with the trace id, and what was known stays in sight', async ({
  open,
  api: _isSetUp,
}) => {
  const page = await open('/health', { allow: [/^answer 503 GET \/health\/ready$/] })
  await page.getByRole('row').filter({ hasText: 'database' }).waitFor()
  await page.clock.install()
  await page.route('**/health/ready', (route) =>
    route.fulfill({
      status: 503,
      json: { error: 'database_unavailable', message: 'Not now.', traceId: 'trace-4711' },
    }),
  )
  await page.getByRole('button', { name: 'Check now' }).click()
  const note = page.getByRole('alert').filter({ hasText: 'Not now.' })
  await passUntil(page, () => note.getByText('trace-4711').isVisible())
  await page.getByRole('row').filter({ hasText: 'database' }).waitFor()
  await page.unroute('**/health/ready')
  await note.getByRole('button', { name: 'Try again' }).click()
  await note.waitFor({ state: 'detached' })
})

test('the checks are looked at every ten seconds', async ({ newPage, api: _isSetUp }) => {
  const page = await newPage()
  await page.clock.install()
  await page.goto('/health')
  await settled(page)
  await stopClock(page)
  const asked = await requestsDuring(page, () => passSeconds(page, 60))
  const times = asked.filter((request) => request === 'GET /health/ready').length
  expect(times).toBeGreaterThanOrEqual(4)
  expect(times).toBeLessThanOrEqual(6)
})
