import type { Page } from 'playwright-core'
import { expect } from 'vitest'
import { expectStatus } from '../conformance/support/answer.ts'
import { button, dialog, field, heading, link, mainLink } from '../support/portal/locators.ts'
import { test as base } from '../support/portal/test.ts'

/** Each test continues where the previous one ended: the reference module is installed and uninstalled. */
const test = base.extend('settings', { scope: 'file' }, { PLAT_MODULE_SUPERVISION_INTERVAL_SECONDS: '1' })

const moduleRow = (page: Page) => page.getByRole('row', { name: /Hello World/ })
const details = (page: Page) => dialog(page, 'Hello World')

test('the catalog shows version, signature and state of a module', async ({ api, open }) => {
  await api.admin
  const page = await open('/modules')
  await expect.poll(() => moduleRow(page).innerText()).toMatch(/Reference module.*1\.0\.0.*Verified.*Not installed/s)
  expect(await moduleRow(page).innerText()).toMatch(/Signed with the key \S+/)
  await button(page, 'Scan for modules').click()
  await page.getByText('The catalog is up to date').waitFor()
})

test('search and filter are part of the address', async ({ open }) => {
  const page = await open('/modules')
  await field(page, 'Search').fill('greets hello')
  await expect.poll(() => page.url()).toContain('search=greets')
  await moduleRow(page).waitFor()
  await page.getByLabel('Show').selectOption('Only installed')
  await page.getByText('No matching modules').waitFor()
  await page.reload()
  await page.getByText('No matching modules').waitFor()
  expect(await field(page, 'Search').inputValue()).toBe('greets hello')
  await page.getByLabel('Show').selectOption('Only verified')
  await moduleRow(page).waitFor()
})

test('rejects unknown versions, images and manifest addresses in their form', async ({ open }) => {
  const page = await open('/modules', { allow: [/^response (400|422) POST/] })
  await button(moduleRow(page), 'Install').click()
  const version = dialog(page, 'Install Hello World?')
  await version.getByLabel('Version').fill('7.7.7')
  await button(version, 'Install').click()
  await expect.poll(() => version.getByRole('alert').innerText()).toMatch(/Trace id\s+[0-9a-f]{32}/)
  await page.keyboard.press('Escape')
  await version.waitFor({ state: 'detached' })

  await button(page, 'Install by image').click()
  const image = dialog(page, 'Install by image')
  await field(image, 'Image').fill('127.0.0.1:9/modules/nothing:1.0.0')
  const manifest = image.getByLabel('Manifest URL')
  await manifest.fill('ftp://example.com/module.json')
  await button(image, 'Install').click()
  await expect.poll(() => manifest.getAttribute('aria-invalid')).toBe('true')
  await manifest.fill('')
  await button(image, 'Install').click()
  await expect.poll(() => image.getByRole('alert').innerText()).toMatch(/Trace id\s+[0-9a-f]{32}/)
})

test('shows the progress of an installation after a reload; all users get the navigation entry within 5 s', async ({
  api,
  open,
}) => {
  const [page, other] = [await open('/modules'), await open('/health', { as: await api.newPerson('Viewer') })]
  expect(await mainLink(other, 'Hello World').count()).toBe(0)
  await button(moduleRow(page), 'Install').click()
  await button(dialog(page, 'Install Hello World?'), 'Install').click()
  await page.getByText('Installation of version 1.0.0').waitFor()
  await page.reload()
  await details(page).getByText('Version 1.0.0 runs.').waitFor()
  const endMs = Date.now()
  await mainLink(other, 'Hello World').waitFor()
  expect(Date.now() - endMs).toBeLessThanOrEqual(5000)
  expect(await details(page).getByRole('list', { name: 'Steps' }).innerText()).toMatch(/Check the signature.*Publish/s)
  await page.keyboard.press('Escape')
  await mainLink(page, 'Hello World').waitFor()
})

test('shows health, isolation, image and contributions of a running module', async ({ open }) => {
  const page = await open('/modules?module=hello')
  await details(page).getByText('hello-module').waitFor()
  await expect.poll(() => details(page).innerText()).toMatch(/Running\s+Healthy\s+Verified/)
  for (const text of ['/api/hello', '@sha256:', '/modules/hello', 'heartbeat', 'every 1 min']) {
    expect(await details(page).innerText()).toContain(text)
  }
})

test('the page of a module calls its API and follows the theme', async ({ open }) => {
  const page = await open('/dashboard')
  await mainLink(page, 'Hello World').click()
  await heading(page, 'Hello World').waitFor()
  const frame = page.frameLocator('iframe')
  await frame.getByRole('heading', { name: 'Hello, World!' }).waitFor()
  await frame.getByRole('button', { name: 'Greet' }).click()
  await frame.getByText(/^Hello, World! It is .* where you are\.$/).waitFor()
  const scheme = () => frame.locator('html').evaluate((root: any) => root.style.colorScheme)
  await expect.poll(scheme).toBe('light')
  await button(page, 'Theme').click()
  await page.getByRole('menuitem', { name: 'Dark' }).click()
  await expect.poll(scheme).toBe('dark')
})

test('uninstalling removes the navigation entry and the page', async ({ api, open }) => {
  // The page may poll the module once more after its removal.
  const page = await open('/modules', { allow: [/^response 404 GET \/api\/v1\/modules\/hello$/] })
  await link(moduleRow(page), 'Hello World').click()
  await button(details(page), 'Uninstall').click()
  await button(dialog(page, 'Uninstall Hello World?'), 'Uninstall').click()
  await details(page).getByText('It is gone.').waitFor()
  await button(details(page), 'Close').click()
  await mainLink(page, 'Hello World').waitFor({ state: 'detached' })
  await expect.poll(() => moduleRow(page).innerText()).toContain('Not installed')
  expectStatus(await (await api.admin).get('/api/v1/modules/hello'), 404, 'module_not_found')

  const missing = await open('/modules/hello', { allow: [/^response 404 (GET|HEAD) /] })
  await heading(missing, 'Module not found').waitFor()
  await link(missing, 'All modules').click()
  await moduleRow(missing).waitFor()
})
