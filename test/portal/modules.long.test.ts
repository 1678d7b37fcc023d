import type { Page } from 'playwright-core'
import { expect } from 'vitest'
import { answered } from '../conformance/support/answer.ts'
import { axe } from '../support/portal/axe.ts'
import { reachingOut } from '../support/portal/layout.ts'
import { faultsOfLook } from '../support/portal/sound.ts'
import { test as base } from '../support/portal/test.ts'

/** What an operator does with modules. One test follows another: the reference module comes and goes. */

const test = base.extend('settings', { scope: 'file' }, { PLAT_MODULE_TICK_SECONDS: '1' })

const row = (page: Page) => page.getByRole('row', { name: /Hello World/ })
const dialog = (page: Page, name: string) => page.getByRole('dialog', { name })
const entry = (page: Page) => page.getByRole('navigation', { name: 'Main' }).getByRole('link', { name: 'Hello World' })
const button = (within: Page | ReturnType<Page['getByRole']>, name: string) =>
  within.getByRole('button', { name, exact: true })

test('the catalog tells of each module what it is, and whose signature it has', async ({ api, open }) => {
  await api.admin
  const page = await open('/modules')
  await expect.poll(() => row(page).innerText()).toMatch(/Reference module.*1\.0\.0.*Verified.*Not installed/s)
  expect(await row(page).innerText()).toMatch(/Signed with the key \S+/)
  expect(await faultsOfLook(page, 'modules-catalog')).toEqual([])
})

test('what is searched for and shown stands in the address', async ({ open }) => {
  const page = await open('/modules')
  await page.getByLabel('Search', { exact: true }).fill('greets hello')
  await expect.poll(() => page.url()).toContain('search=greets')
  await row(page).waitFor()
  await page.getByLabel('Show').selectOption('Only installed')
  await page.getByText('No module fits').waitFor()
  await page.reload()
  await page.getByText('No module fits').waitFor()
  expect(await page.getByLabel('Search', { exact: true }).inputValue()).toBe('greets hello')
  await page.getByLabel('Show').selectOption('Only verified')
  await row(page).waitFor()
})

test('who may not install modules is not offered it', async ({ api, open }) => {
  const { username, password } = await api.newPerson('Viewer')
  const page = await open('/modules', { as: { username, password } })
  await row(page).waitFor()
  await page.getByRole('link', { name: 'Hello World' }).click()
  await dialog(page, 'Hello World').getByText('127.0.0.1').waitFor()
  expect(await page.getByRole('button', { name: /install|look for/i }).count()).toBe(0)
})

test('a look for new modules says when it is done', async ({ open }) => {
  const page = await open('/modules')
  await button(page, 'Look for new modules').click()
  await page.getByText('The catalog is up to date').waitFor()
})

test('a version that there is not is refused in words, with the trace', async ({ open }) => {
  const page = await open('/modules', { allow: [/^answer 422 POST/] })
  await button(row(page), 'Install').click()
  const asked = dialog(page, 'Install Hello World?')
  await asked.getByLabel('Version').fill('7.7.7')
  await button(asked, 'Install').click()
  await expect.poll(() => asked.getByRole('alert').innerText()).toMatch(/Trace id\s+[0-9a-f]{32}/)
  await axe(page)
  await page.keyboard.press('Escape')
  await asked.waitFor({ state: 'detached' })
})

test('an image that cannot be had is refused, and what is wrong with a field stands beside it', async ({ open }) => {
  const page = await open('/modules', { allow: [/^answer (400|422) POST/] })
  await button(page, 'Install by image').click()
  const asked = dialog(page, 'Install by image')
  await asked.getByLabel('Image', { exact: true }).fill('127.0.0.1:9/modules/nothing:1.0.0')
  await asked.getByLabel('Address of the manifest').fill('ftp://example.com/module.json')
  await button(asked, 'Install').click()
  await expect.poll(() => asked.getByLabel('Address of the manifest').getAttribute('aria-invalid')).toBe('true')
  await asked.getByLabel('Address of the manifest').fill('')
  await button(asked, 'Install').click()
  await expect.poll(() => asked.getByRole('alert').innerText()).toMatch(/Trace id\s+[0-9a-f]{32}/)
})

test('an installation is followed to its end through a reload, and everybody has the entry soon', async ({
  api,
  open,
}) => {
  const { username, password } = await api.newPerson('Viewer')
  const [page, other] = [await open('/modules'), await open('/health', { as: { username, password } })]
  expect(await entry(other).count()).toBe(0)
  await button(row(page), 'Install').click()
  await button(dialog(page, 'Install Hello World?'), 'Install').click()
  await page.getByText('Installation of version 1.0.0').waitFor()
  await page.reload()
  const detail = dialog(page, 'Hello World')
  await detail.getByText('Version 1.0.0 runs.').waitFor()
  const endedMs = Date.now()
  expect(await detail.getByRole('list', { name: 'Steps' }).innerText()).toMatch(/Check the signature.*Publish/s)
  await entry(other).waitFor()
  const elsewhereMs = Date.now() - endedMs
  await axe(page)
  await page.keyboard.press('Escape')
  await entry(page).waitFor()
  console.log(`The entry was there ${elsewhereMs} ms after its page had told of the end.`)
})

test('what runs tells its health, its isolation, its image, and what it adds', async ({ open }) => {
  const page = await open('/modules?module=hello')
  const detail = dialog(page, 'Hello World')
  await detail.getByText('hello-module').waitFor()
  await expect.poll(() => detail.innerText()).toMatch(/Running\s+Healthy\s+Verified/)
  for (const text of ['/api/hello', '@sha256:', '/modules/hello', 'heartbeat', 'every 1 min']) {
    expect(await detail.innerText()).toContain(text)
  }
  expect(await faultsOfLook(page, 'modules-running')).toEqual([])
})

test('its page greets by its own API, and looks as the portal does', async ({ open }) => {
  const page = await open('/dashboard')
  await entry(page).click()
  await page.getByRole('heading', { level: 1, name: 'Hello World' }).waitFor()
  const frame = page.frameLocator('iframe')
  await frame.getByRole('heading', { name: 'Hello, World!' }).waitFor()
  await frame.getByRole('button', { name: 'Greet' }).click()
  await frame.getByText(/^Hello, World! It is .* where you are\.$/).waitFor()
  const scheme = () => frame.locator('html').evaluate((root: any) => root.style.colorScheme)
  await expect.poll(scheme).toBe('light')
  await page.getByRole('button', { name: 'Theme' }).click()
  await page.getByRole('menuitem', { name: 'Dark' }).click()
  await expect.poll(scheme).toBe('dark')
  await axe(page)
  await page.setViewportSize({ width: 360, height: 800 })
  expect(await reachingOut(page)).toEqual([])
})

test('once it is uninstalled its entry and its page are gone', async ({ api, open }) => {
  // The module may be gone a moment before the page knows.
  const page = await open('/modules', { allow: [/^answer 404 GET \/api\/v1\/modules\/hello$/] })
  await row(page).getByRole('link', { name: 'Hello World' }).click()
  const detail = dialog(page, 'Hello World')
  await button(detail, 'Uninstall').click()
  await button(dialog(page, 'Uninstall Hello World?'), 'Uninstall').click()
  await detail.getByText('It is gone.').waitFor()
  await button(detail, 'Close').click()
  await entry(page).waitFor({ state: 'detached' })
  await expect.poll(() => row(page).innerText()).toContain('Not installed')
  answered(await (await api.admin).get('/api/v1/modules/hello'), 404, 'module_not_found')
})

test('the address of a page that no module has says so', async ({ open }) => {
  const page = await open('/modules/hello', { allow: [/^answer 404 (GET|HEAD) /] })
  await page.getByRole('heading', { name: 'No such module' }).waitFor()
  await page.getByRole('link', { name: 'Go to the modules' }).click()
  await row(page).waitFor()
})
