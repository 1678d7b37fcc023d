import type { Page } from 'playwright-core'
import { expect } from 'vitest'
import { button, dialog, field, heading, link, mainLink } from '../support/portal/locators.ts'
import { holdRequests } from '../support/portal/requests.ts'
import { test, testOnOwnPlatform } from '../support/portal/test.ts'

testOnOwnPlatform(
  'an open tab keeps its data while the platform is down and recovers',
  async ({ open, platform, api }) => {
    await api.newCluster({ name: 'berlin-1' })
    const page = await open('/clusters', { allow: [/^failed /, /^console error: /, /^response 50\d /] })
    const banner = page.getByText('The platform is not responding.')
    await link(page, 'berlin-1').waitFor()
    await platform.kill()
    await banner.waitFor({ timeout: 60_000 })
    expect(await link(page, 'berlin-1').isVisible()).toBe(true)
    // The palette is not loaded yet: its failure is shown as a toast.
    await page.keyboard.press('Control+k')
    await page.getByText('Failed to open the search').first().waitFor()
    expect(await link(page, 'berlin-1').isVisible()).toBe(true)
    // The page is not loaded yet: its failure is shown inside the shell.
    await mainLink(page, 'Audit trail').click()
    await heading(page, 'Failed to load this page').waitFor()
    await page.getByRole('main').getByRole('alert').getByText('cannot be reached').waitFor()
    await platform.restart()
    await heading(page, 'Audit trail').waitFor({ timeout: 90_000 })
    await banner.waitFor({ state: 'detached' })
  },
)

test('a lost connection is shown, and the page loads when it returns', async ({ open, api }) => {
  const { name } = await api.newCluster()
  const page = await open('/dashboard', { allow: [/^failed /, /^console error: /] })
  const banner = page.getByText('The platform is not responding.')
  // Responses never arrive.
  await page.route(/\/(api|health)\//, () => {})
  await mainLink(page, 'Clusters').click()
  await banner.waitFor()
  await page.getByText('Waiting for the platform to load').first().waitFor()
  await page.unroute(/\/(api|health)\//)
  await link(page, name).waitFor()
  await banner.waitFor({ state: 'detached' })
})

const openSites = async (page: Page) => {
  await button(page, 'Sites').click()
  await dialog(page).waitFor()
}
const createSite = async (page: Page, name: string) => {
  await field(dialog(page), 'Site name').fill(name)
  await button(dialog(page), 'Create site').click()
}

/** Holds the response to the first GET of a path until the returned function is called. */
async function holdFirst(page: Page, path: string): Promise<() => void> {
  const { promise: isReleased, resolve: release } = Promise.withResolvers<void>()
  let isFirst = true
  await page.route(path, async (route) => {
    if (route.request().method() !== 'GET' || !isFirst) return route.continue()
    isFirst = false
    const response = await route.fetch()
    await isReleased
    // The page may have aborted the request.
    await route.fulfill({ response }).catch(() => undefined)
  })
  return release
}

test('a read that started before a write does not overwrite its result', async ({ open, api }) => {
  const { name: siteName } = await api.newSite()
  const page = await open('/clusters')
  const release = await holdFirst(page, '**/api/v1/sites')
  const read = page.waitForRequest('**/api/v1/sites')
  await openSites(page)
  await read
  await createSite(page, 'Late')
  const item = (name: string) => dialog(page).getByRole('listitem').filter({ hasText: name })
  await item('Late').waitFor()
  release()
  await item(siteName).waitFor()
  expect(await item('Late').count()).toBe(1)
})

test('an error after the dialog was closed is shown as a toast', async ({ open }) => {
  const page = await open('/clusters', { allow: [/^failed POST \/api\/v1\/sites/, /^console error: /] })
  await page.route('**/api/v1/sites', (route) =>
    route.request().method() === 'POST' ? route.abort() : route.continue(),
  )
  const release = await holdRequests(page, '**/api/v1/sites', 'POST')
  await openSites(page)
  const sentRequest = page.waitForRequest((request) => request.method() === 'POST')
  await createSite(page, 'Nowhere')
  await sentRequest
  await page.keyboard.press('Escape')
  await dialog(page).waitFor({ state: 'detached' })
  release()
  await page.getByText('Create site: outcome unknown').first().waitFor()
})

/** Blocks a file until the returned function is called, and permanently the request that checks for a new version. */
async function blockFile(page: Page, file: string): Promise<() => Promise<void>> {
  await page.route(file, (route) => route.abort())
  await page.route('/', (route) => (route.request().method() === 'HEAD' ? route.abort() : route.continue()))
  return () => page.unroute(file)
}

const fileErrors = [/^failed (GET \/assets\/|HEAD \/: )/, /^console error: /]

test('a part of the portal whose file fails to load can be opened again', async ({ open }) => {
  const page = await open('/dashboard', { allow: fileErrors })
  await page.getByRole('region').first().waitFor()
  const unblock = await blockFile(page, '**/assets/editing-*.js')
  await button(page, 'Edit dashboard').click()
  await page.getByText('Failed to open the dashboard editor').first().waitFor()
  expect(await page.getByRole('region').count()).toBeGreaterThan(0)
  await unblock()
  await button(page, 'Edit dashboard').click()
  await button(page, 'Done').waitFor()
})

test('a toast is shown although its file failed to load before', async ({ newPage }) => {
  const page = await newPage({ allow: fileErrors })
  const failedRequest = page.waitForEvent('requestfailed', (request) => request.url().includes('/assets/toast-stack-'))
  const unblock = await blockFile(page, '**/assets/toast-stack-*.js')
  await page.goto('/clusters?search=a')
  await failedRequest
  await button(page, 'Saved filters').click()
  await dialog(page).getByRole('textbox').fill('filter')
  await unblock()
  await button(dialog(page), 'Save filter').click()
  await page.getByText('Filter saved').first().waitFor()
})

test('a dialog focuses its first field', async ({ open }) => {
  const page = await open('/clusters')
  await openSites(page)
  await page.keyboard.type('Frankfurt am Main')
  await expect.poll(() => dialog(page).getByRole('textbox').first().inputValue()).toBe('Frankfurt am Main')
})

test('reloading the registration page opens the cluster, which still waits for its relay', async ({ open }) => {
  const page = await open('/clusters/register')
  await field(page, 'Name').fill('munich-1')
  await button(page, 'Register cluster').click()
  await page.getByText('Waiting for the relay').waitFor()
  await page.reload()
  await heading(page, 'munich-1').waitFor()
  await button(page, 'New enrollment token').waitFor()
})

test('a search does not undo the navigation of a link that is clicked right after it', async ({ newPage }) => {
  const page = await newPage()
  await page.clock.install()
  await page.goto('/clusters')
  const release = await holdRequests(page, '**/assets/register-page-*.js', 'GET')
  await page.getByRole('searchbox', { name: 'Name' }).fill('berlin')
  await link(page, 'Register cluster').first().click()
  await page.clock.runFor(1000)
  release()
  await heading(page, 'Register a cluster').waitFor()
})
