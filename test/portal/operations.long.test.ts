import type { Page } from 'playwright-core'
import { expect } from 'vitest'
import { expectStatus } from '../conformance/support/answer.ts'
import { waitForJobEnd } from '../conformance/support/modules.ts'
import { button, dialog, field, heading, link, mainLink } from '../support/portal/locators.ts'
import { testOnOwnPlatform } from '../support/portal/test.ts'
import { waitFor } from '../support/wait-for.ts'
import { builtFunctions, publishRelease, pushUnsignedRelease } from '../support/releases.ts'
import { zipOf } from '../../scripts/release/zip.ts'

/**
 * Each test continues where the previous one ended: the reference module is installed and uninstalled, then the
 * platform is updated to 9.1.0 and rolled back.
 */
const settings = { PLAT_MODULE_SUPERVISION_INTERVAL_SECONDS: '1', PLAT_UPDATE_BAKE_SECONDS: '1' }
const test = testOnOwnPlatform.extend('settings', { scope: 'file' }, settings)

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

test('a click during the pause after typing a search reaches its target', async ({ open }) => {
  const page = await open('/modules')
  await link(moduleRow(page), 'Hello World').waitFor()
  await page.clock.install()
  await page.clock.pauseAt(Date.now() + 60_000)
  await field(page, 'Search').fill('no such module')
  await link(moduleRow(page), 'Hello World').click({ delay: 200 })
  await page.clock.runFor(1000)
  await details(page).waitFor()
  expect(new URL(page.url()).search).toBe('?module=hello&search=no+such+module')
})

test('rejects unknown versions, images and manifest addresses in their form', async ({ open }) => {
  const page = await open('/modules', { allow: [/^response (400|422) POST/] })
  await button(moduleRow(page), 'Install').click()
  const version = dialog(page, 'Install Hello World?')
  await version.getByLabel('Version').fill('7.7.7')
  await button(version, 'Install').click()
  await expect.poll(() => version.getByRole('alert').textContent()).toMatch(/Trace id\s*[0-9a-f]{32}/)
  await page.keyboard.press('Escape')
  await button(page, 'Discard changes').click()
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
  await expect.poll(() => image.getByRole('alert').textContent()).toMatch(/Trace id\s*[0-9a-f]{32}/)
})

test('a reinstalled module receives only the events that were selected in the dialog', async ({ api, open }) => {
  const admin = await api.admin
  const path = '/api/v1/modules/hello'
  await waitForJobEnd(api, expectStatus(await admin.post(`${path}/install`, {}), 202))
  expectStatus(await admin.put('/api/v1/organisation/modules/hello', { enabled: true }), 200)
  await waitForJobEnd(api, expectStatus(await admin.delete(path), 202))
  const page = await open('/modules')
  await button(moduleRow(page), 'Install').click()
  await button(dialog(page, 'Install Hello World?'), 'Install').click()
  await details(page).getByText('Version 1.0.0 runs.').waitFor()
  await details(page).getByText('Not sent', { exact: true }).waitFor()
  await waitForJobEnd(api, expectStatus(await admin.delete(path), 202))
})

test('shows the progress of an installation after a reload; other users get the entry', async ({ api, open }) => {
  const [page, viewerPage] = [await open('/modules'), await open('/health', { as: await api.newUser('Viewer') })]
  expect(await mainLink(viewerPage, 'Hello World').count()).toBe(0)
  await button(moduleRow(page), 'Install').click()
  await button(dialog(page, 'Install Hello World?'), 'Install').click()
  await page.getByText('Installation of version 1.0.0').waitFor()
  await page.reload()
  await details(page).getByText('Version 1.0.0 runs.').waitFor()
  await mainLink(viewerPage, 'Hello World').waitFor()
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
  await details(page).getByText('The module is uninstalled.').waitFor()
  await button(details(page), 'Close').click()
  await mainLink(page, 'Hello World').waitFor({ state: 'detached' })
  await expect.poll(() => moduleRow(page).innerText()).toContain('Not installed')
  expectStatus(await (await api.admin).get('/api/v1/modules/hello'), 404, 'module_not_found')

  const missingPage = await open('/modules/hello', { allow: [/^response 404 (GET|HEAD) /] })
  await heading(missingPage, 'Module not found').waitFor()
  await link(missingPage, 'All modules').click()
  await moduleRow(missingPage).waitFor()
})

/** Requests may fail while functions are replaced. */
const replacementErrors = [/^response 50[0-9] /, /^failed GET /]

const release = (page: Page) => page.getByRole('region', { name: 'Release', exact: true })
const history = (page: Page) => page.getByRole('region', { name: 'History' })

test('a check finds a release, and explains why another one cannot be applied', async ({ platform, api, open }) => {
  await api.admin
  const page = await open('/settings/updates')
  await release(page).getByText('Up to date').waitFor()
  await release(page).getByText('No previous version').waitFor()
  await history(page).getByText('No updates yet.').waitFor()
  expect(await page.getByRole('button', { name: /^(Update|Roll back) to/ }).count()).toBe(0)
  const releaseNotesUrl = 'https://example.com/9.1.0'
  await publishRelease(
    platform,
    { version: '9.1.0', releaseNotesUrl, relay: { sha256: 'a'.repeat(64), signature: 'c2ln' } },
    await builtFunctions('9.1.0', 'reports version'),
  )
  await pushUnsignedRelease(
    platform,
    { version: '9.9.9' },
    new Map([['meta', zipOf({ 'index.mjs': Buffer.from('') })]]),
  )
  await button(page, 'Check now').click()
  await release(page).getByText('Update available').waitFor()
  await release(page).getByText('No signature of').waitFor()
  const notes = release(page).getByRole('link', { name: /Release notes/ })
  const attributes = [await notes.getAttribute('href'), await notes.getAttribute('rel')]
  expect(attributes).toEqual([releaseNotesUrl, 'noopener noreferrer'])
})

test('an update needs confirmation while jobs run, and shows its progress after a reload', async ({ api, open }) => {
  const relay = await api.newRelay()
  const { jobId, leaseId } = await api.startJob(relay)
  const page = await open('/settings/updates', { allow: [/^response 409 PUT/, ...replacementErrors] })
  await button(page, 'Update to 9.1.0').click()
  const confirmation = dialog(page, 'Update the platform to 9.1.0?')
  await button(confirmation, 'Update').click()
  await confirmation.getByRole('alert').getByText('Jobs are running').waitFor()
  await confirmation.getByLabel(/^Update even if jobs are running/).check()
  await button(confirmation, 'Update').click()
  const progress = page.getByRole('region', { name: /^Update to 9\.1\.0 from/ })
  // Steps are also announced as text.
  await progress.getByText('Deploy the new version').first().waitFor()
  await expect.poll(() => button(release(page), 'Update to 9.1.0').isDisabled()).toBe(true)
  await page.reload()
  await progress.getByText('Shift 10 % of traffic').first().waitFor()
  await button(progress, 'Reload the portal').waitFor()
  expect(await progress.innerText()).toMatch(/^Update to 9\.1\.0 from \S+\s+Completed/)
  await expect.poll(() => release(page).innerText()).toMatch(/Current version\s+9\.1\.0/)
  await history(page).getByRole('link', { name: 'Update to 9.1.0' }).waitFor()
  await button(progress, 'Reload the portal').click()
  await release(page).getByText('Up to date').waitFor()
  expectStatus(await relay.complete(jobId, leaseId, 0), 200)
})

test('a relay update shows its progress with names and reasons, stops by itself, and can be cancelled', async ({
  api,
  open,
}) => {
  const relay = await api.newRelay()
  const admin = await api.admin
  const { name } = expectStatus(
    await admin.patch(`/api/v1/clusters/${relay.clusterId}`, { labels: { wave: 'one' } }),
    200,
  )
  const page = await open('/clusters/relay-updates?selector=wave')
  await dialog(page, 'Update relays').getByText(`1 cluster: ${name}.`).waitFor()
  await button(dialog(page, 'Update relays'), 'Review 1 cluster').click()
  await dialog(page, 'Review').getByText('1 online').waitFor()
  await button(dialog(page, 'Review'), 'Update relays of 1 cluster').click()
  const update = dialog(page, 'Relay update')
  // The sweep may already have offered the version.
  await update.getByText(/^1 (Pending|Offered)$/).waitFor()
  const id = new URL(page.url()).searchParams.get('update') ?? ''
  const offer = async () => expectStatus(await relay.heartbeat(), 200).update
  await waitFor('the offer', offer)
  await relay.heartbeat({ update: { id, status: 'rolledBack', reason: 'exit <b>4</b>' } })
  await update.getByText(`${name}. First reason: exit <b>4</b>`).waitFor()
  await update.getByRole('row', { name: new RegExp(`${name}.*RolledBack`) }).waitFor()
  await field(update, 'Status').selectOption('Pending')
  await update.getByText('No cluster has this status.').waitFor()
  await page.keyboard.press('Escape')
  await button(page, 'Update relays').click()
  await field(dialog(page, 'Update relays'), 'Label selector').fill('wave=one')
  await button(dialog(page, 'Update relays'), 'Review 1 cluster').click()
  await button(dialog(page, 'Review'), 'Update relays of 1 cluster').click()
  await button(update, 'Cancel update').click()
  await button(dialog(page, 'Cancel the update to 9.1.0?'), 'Cancel update').click()
  await update.getByText('Cancelled').waitFor()
  await page.keyboard.press('Escape')
  await page.getByRole('row', { name: /9\.1\.0.*Stopped/ }).waitFor()
})

test('a rollback names its version', async ({ open }) => {
  const page = await open('/settings/updates', { allow: replacementErrors })
  await button(page, /^Roll back to /).click()
  await button(dialog(page, /^Roll back to \d/), 'Roll back').click()
  const progress = page.getByRole('region', { name: /^Rollback to .* from 9\.1\.0/ })
  await button(progress, 'Reload the portal').waitFor()
  expect(await progress.innerText()).toContain('Completed')
  await button(release(page), 'Update to 9.1.0').waitFor()
  expect(await history(page).getByRole('row').count()).toBe(3)
})

test('an unreachable release registry shows the reason and the last result', async ({ platform, open }) => {
  const page = await open('/settings/updates', { allow: [...replacementErrors, /^console error: /, /^response 503 /] })
  await release(page).getByText('Update available').waitFor()
  await platform.stop()
  await platform.restart({ PLAT_RELEASE_SOURCE: '127.0.0.1:9/platform/releases' })
  await button(page, 'Check now').click()
  const alert = release(page).getByRole('alert')
  await alert.getByText('PLAT_REGISTRY_ALLOW').waitFor()
  expect(await alert.textContent()).toMatch(/Trace id\s*[0-9a-f]{32}/)
  expect(await release(page).innerText()).toMatch(/Newest version\s+9\.1\.0/)
})
