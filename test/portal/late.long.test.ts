import type { Page } from 'playwright-core'
import { expect } from 'vitest'
import { dialog } from '../support/portal/parts.ts'
import { test } from '../support/portal/shared.ts'

/** Answers and files that come late, or not at all. */

/** Holds back what the platform answers to the first request for a path: what it says is older than all that is done meanwhile. */
async function holdFirst(page: Page, path: string): Promise<() => void> {
  const { promise: isReleased, resolve: release } = Promise.withResolvers<void>()
  let isFirst = true
  await page.route(path, async (route) => {
    if (route.request().method() !== 'GET' || !isFirst) return route.continue()
    isFirst = false
    const response = await route.fetch()
    await isReleased
    // A page that no longer waits for it has ended the request.
    await route.fulfill({ response }).catch(() => undefined)
  })
  return release
}

const allow = [/^failed (GET \/assets\/|HEAD \/: )/, /^console error: /]

/** Lets no request for a file through, as where the platform does not answer just now; answers what lets them through again. */
async function withhold(page: Page, file: string): Promise<() => Promise<void>> {
  await page.route(file, (route) => route.abort())
  // Whether the platform answers at all is asked before the portal is loaded anew.
  await page.route('/', (route) => (route.request().method() === 'HEAD' ? route.abort() : route.continue()))
  return () => page.unroute(file)
}

test('a look that began before a write does not undo what the write has shown', async ({ open, api }) => {
  const { name: known } = await api.newSite()
  const page = await open('/clusters')
  const release = await holdFirst(page, '**/api/v1/sites')
  const look = page.waitForRequest('**/api/v1/sites')
  await page.getByRole('button', { name: 'Sites' }).click()
  await look
  await dialog(page).getByRole('textbox', { name: 'Name of the new site' }).fill('Late')
  await dialog(page).getByRole('button', { name: 'Create site' }).click()
  await dialog(page).getByRole('listitem').filter({ hasText: 'Late' }).waitFor()
  release()
  await dialog(page).getByRole('listitem').filter({ hasText: known }).waitFor()
  expect(await dialog(page).getByRole('listitem').filter({ hasText: 'Late' }).count()).toBe(1)
})

test('what fails after its dialog was closed is told in passing', async ({ open }) => {
  const page = await open('/clusters', { allow: [/^failed POST \/api\/v1\/sites/, /^console error: /] })
  const { promise: isReleased, resolve: release } = Promise.withResolvers<void>()
  await page.route('**/api/v1/sites', async (route) => {
    if (route.request().method() !== 'POST') return route.continue()
    await isReleased
    await route.abort()
  })
  await page.getByRole('button', { name: 'Sites' }).click()
  const sent = page.waitForRequest((request) => request.method() === 'POST')
  await dialog(page).getByRole('textbox', { name: 'Name of the new site' }).fill('Nowhere')
  await dialog(page).getByRole('button', { name: 'Create site' }).click()
  await sent
  await page.keyboard.press('Escape')
  await dialog(page).waitFor({ state: 'detached' })
  release()
  await page.getByText('Create site: it may not have been done').first().waitFor()
})

test('where the file of a part of the page does not come the page stays, and the next try brings it', async ({
  open,
}) => {
  const page = await open('/dashboard', { allow })
  await page.getByRole('region').first().waitFor()
  const letThrough = await withhold(page, '**/assets/editing-*.js')
  await page.getByRole('button', { name: 'Edit dashboard' }).click()
  await page.getByText('The dashboard could not be opened for editing').first().waitFor()
  expect(await page.getByRole('region').count()).toBeGreaterThan(0)
  await letThrough()
  await page.getByRole('button', { name: 'Edit dashboard' }).click()
  await page.getByRole('button', { name: 'Done' }).waitFor()
})

test('where the file that shows messages does not come the page stays, and the next message brings it', async ({
  newPage,
}) => {
  const page = await newPage({ allow })
  const failed = page.waitForEvent('requestfailed', (request) => request.url().includes('/assets/toast-stack-'))
  const letThrough = await withhold(page, '**/assets/toast-stack-*.js')
  await page.goto('/clusters?search=a')
  await failed
  await page.getByRole('button', { name: 'Saved filters' }).click()
  await dialog(page).getByRole('textbox').fill('told')
  await letThrough()
  await dialog(page).getByRole('button', { name: 'Save filter' }).click()
  await page.getByText('The filter was saved').first().waitFor()
})
