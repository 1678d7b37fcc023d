import type { Page } from 'playwright-core'
import { expect } from 'vitest'
import { button, heading, link } from '../support/portal/locators.ts'
import { waitForPage } from '../support/portal/open.ts'
import { advanceUntil, failRequests } from '../support/portal/requests.ts'
import { test } from '../support/portal/test.ts'

const check = (name: string, status: string, tag: string, source: string) => {
  return { name, status, tags: [tag], source, durationMs: 4.2, checkedAt: new Date().toISOString(), description: '' }
}

/** Names of other checks may contain the name. */
const checkRow = (page: Page, name: string) =>
  page.getByRole('row').filter({ has: page.getByText(name, { exact: true }) })

const unhealthyModule = {
  status: 'unavailable',
  aggregate: 'Unhealthy',
  checks: [
    check('queue', 'Degraded', 'degradable', 'module:hello'),
    check('mirror', 'Healthy', 'informational', 'platform'),
    check('database', 'Unhealthy', 'critical', 'platform'),
  ],
}

test('shows each check with tags and source; the worst first', async ({ open }) => {
  const page = await open('/health', { allow: [/^response 503 GET \/health\/ready$/] })
  for (const text of ['Healthy', 'critical', 'platform', 'The store is available'])
    await checkRow(page, 'database').getByText(text).waitFor()
  await heading(page, 'Tags', 2).waitFor()
  await page.route('**/health/ready', (route) => route.fulfill({ status: 503, json: unhealthyModule }))
  await page.reload()
  await waitForPage(page)
  await heading(page, /./).getByText('Unhealthy').waitFor()
  const rows = await page.getByRole('table').locator('tbody tr').allInnerTexts()
  expect(rows.map((text) => /database|queue|mirror/.exec(text)?.[0])).toEqual(['database', 'queue', 'mirror'])
})

test('keeps the last result when a check fails', async ({ open }) => {
  const page = await open('/health', { allow: [/^response 503 GET \/health\/ready$/] })
  await checkRow(page, 'database').waitFor()
  await page.clock.install()
  const recover = await failRequests(page, '**/health/ready')
  await button(page, 'Check now').click()
  const alert = page.getByRole('alert').filter({ hasText: 'Not now.' })
  await advanceUntil(page, () => alert.isVisible())
  await alert.getByText('Details').click()
  await alert.getByText('trace-4711').waitFor()
  await checkRow(page, 'database').waitFor()
  await recover()
  await button(alert, 'Try again').click()
  await alert.waitFor({ state: 'detached' })
})

const styles = () => {
  const { document, getComputedStyle }: any = globalThis
  const style = (selector: string, property: string) => getComputedStyle(document.querySelector(selector))[property]
  return [style('html', 'backgroundColor'), style('h1', 'color'), style('h1', 'fontFamily'), style('h1', 'fontSize')]
}

test('the API reference has the style of the portal, a skip link and a link back', async ({ open }) => {
  const [reference, portal] = [await open('/docs'), await open('/health')]
  for (const colorScheme of ['light', 'dark'] as const) {
    await Promise.all([reference, portal].map((page) => page.emulateMedia({ colorScheme })))
    expect(await reference.evaluate(styles)).toEqual(await portal.evaluate(styles))
  }
  await reference.keyboard.press('Tab')
  await reference.keyboard.press('Enter')
  expect(await reference.evaluate(() => (globalThis as any).document.activeElement.localName)).toBe('main')
  await link(reference, 'Back to the portal').click()
  await heading(reference, 'Dashboard').waitFor()
})
