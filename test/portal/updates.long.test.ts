import type { Page } from 'playwright-core'
import { expect } from 'vitest'
import { expectStatus } from '../conformance/support/answer.ts'
import { zipOf } from '../../scripts/release/zip.ts'
import { button, dialog } from '../support/portal/locators.ts'
import { test as base } from '../support/portal/test.ts'
import { builtFunctions, published, pushed, telling } from '../support/releases.ts'

/** Each test continues where the previous one ended: update to 9.1.0 and roll back. */
const test = base.extend('settings', { scope: 'file' }, { PLAT_UPDATE_BAKE_SECONDS: '1' })

/** Requests may fail while functions are replaced. */
const replacing = [/^response 50[0-9] /, /^failed GET /]

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
  await published(platform, { version: '9.1.0', releaseNotesUrl }, await builtFunctions('9.1.0', telling))
  await pushed(platform, { version: '9.9.9' }, new Map([['meta', zipOf({ 'index.mjs': Buffer.from('') })]]))
  await button(page, 'Check now').click()
  await release(page).getByText('Update available').waitFor()
  await release(page).getByText('No signature of').waitFor()
  const notes = release(page).getByRole('link', { name: /Release notes/ })
  const attributes = [await notes.getAttribute('href'), await notes.getAttribute('rel')]
  expect(attributes).toEqual([releaseNotesUrl, 'noopener noreferrer'])
})

test('an update asks before it interrupts jobs, and shows its progress after a reload', async ({ api, open }) => {
  const relay = await api.newRelay()
  const { jobId, leaseId } = await api.running(relay)
  const page = await open('/settings/updates', { allow: [/^response 409 PUT/, ...replacing] })
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

test('a rollback names its version', async ({ open }) => {
  const page = await open('/settings/updates', { allow: replacing })
  await button(page, /^Roll back to /).click()
  await button(dialog(page, /^Roll back to \d/), 'Roll back').click()
  const progress = page.getByRole('region', { name: /^Rollback to .* from 9\.1\.0/ })
  await button(progress, 'Reload the portal').waitFor()
  expect(await progress.innerText()).toContain('Completed')
  await button(release(page), 'Update to 9.1.0').waitFor()
  expect(await history(page).getByRole('row').count()).toBe(3)
})

test('unreachable releases show the reason and the last result', async ({ platform, open }) => {
  const page = await open('/settings/updates', { allow: [...replacing, /^console error: /, /^response 503 /] })
  await release(page).getByText('Update available').waitFor()
  await platform.stop()
  await platform.restart({ PLAT_RELEASE_SOURCE: '127.0.0.1:9/platform/releases' })
  await button(page, 'Check now').click()
  const alert = release(page).getByRole('alert')
  await alert.getByText('PLAT_REGISTRY_ALLOW').waitFor()
  expect(await alert.innerText()).toMatch(/Trace id\s+[0-9a-f]{32}/)
  expect(await release(page).innerText()).toMatch(/Newest version\s+9\.1\.0/)
})
