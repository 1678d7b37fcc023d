import type { Page } from 'playwright-core'
import { expect } from 'vitest'
import { answered } from '../conformance/support/answer.ts'
import { zipOf } from '../../scripts/release/zip.ts'
import { axe } from '../support/portal/axe.ts'
import { faultsOfLook } from '../support/portal/sound.ts'
import { test as base } from '../support/portal/test.ts'
import { builtFunctions, published, pushed, telling } from '../support/releases.ts'

/** Releases of the platform as its administrator sees them. One test follows another. */

const test = base.extend('settings', { scope: 'file' }, { PLAT_UPDATE_BAKE_SECONDS: '1' })

/** Parts of the platform are replaced under the page. */
const replaced = [/^answer 50[0-9] /, /^failed GET /]

const button = (within: Page | ReturnType<Page['getByRole']>, name: string) =>
  within.getByRole('button', { name, exact: true })
const release = (page: Page) => page.getByRole('region', { name: 'Release', exact: true })
const history = (page: Page) => page.getByRole('region', { name: 'History' })

const expectSound = async (page: Page, name: string) => expect(await faultsOfLook(page, `updates-${name}`)).toEqual([])

test('without a newer release the platform is up to date, and there is nothing to go back to', async ({
  api,
  open,
}) => {
  await api.admin
  const page = await open('/settings/updates')
  await release(page).getByText('Up to date').waitFor()
  await release(page).getByText('There is no version to go back to').waitFor()
  await history(page).getByText('was not updated yet').waitFor()
  expect(await page.getByRole('button', { name: /^(Update|Go back) to/ }).count()).toBe(0)
  await expectSound(page, 'up-to-date')
})

test('who may not update the platform is told so', async ({ api, open }) => {
  const { username, password } = await api.newPerson('OrgAdmin')
  const page = await open('/settings/updates', { as: { username, password } })
  await page.getByText('You may not see this page').waitFor()
  expect(await button(page, 'Check now').count()).toBe(0)
})

test('a look finds a release, and says why another one cannot be applied', async ({ platform, open }) => {
  const page = await open('/settings/updates')
  await release(page).getByText('Up to date').waitFor()
  await published(
    platform,
    { version: '9.1.0', releaseNotesUrl: 'https://example.com/9.1.0' },
    await builtFunctions('9.1.0', telling),
  )
  await pushed(platform, { version: '9.9.9' }, new Map([['meta', zipOf({ 'index.mjs': Buffer.from('') })]]))
  await button(page, 'Check now').click()
  await release(page).getByText('Update available').waitFor()
  await release(page).getByText('No signature of').waitFor()
  const notes = release(page).getByRole('link', { name: /Read them/ })
  expect([await notes.getAttribute('href'), await notes.getAttribute('rel')]).toEqual([
    'https://example.com/9.1.0',
    'noopener noreferrer',
  ])
  await expectSound(page, 'available')
})

test('an update says that jobs are running, is begun all the same, and is followed to its end and through a reload', async ({
  api,
  open,
}) => {
  const relay = await api.newRelay()
  const { jobId, leaseId } = await api.running(relay)
  const page = await open('/settings/updates', { allow: [/^answer 409 PUT/, ...replaced] })
  await button(page, 'Update to 9.1.0').click()
  const asked = page.getByRole('dialog', { name: 'Update the platform to 9.1.0?' })
  await button(asked, 'Update').click()
  await asked.getByRole('alert').getByText('Jobs are running').waitFor()
  await asked.getByLabel(/^Although jobs are running/).check()
  await axe(page)
  await button(asked, 'Update').click()
  const progress = page.getByRole('region', { name: /^Update to 9\.1\.0 from/ })
  // What is done is said in words, too, for whoever does not see the list.
  await progress.getByText('Put the new version beside the old one').first().waitFor()
  await expect.poll(() => button(release(page), 'Update to 9.1.0').isDisabled()).toBe(true)
  await page.reload()
  await progress.getByText('Let it answer 10 % of the requests').first().waitFor()
  await button(progress, 'Load the portal anew').waitFor()
  expect(await progress.innerText()).toMatch(/^Update to 9\.1\.0 from \S+\s+Completed/)
  await expect.poll(() => release(page).innerText()).toMatch(/Current version\s+9\.1\.0/)
  await history(page).getByRole('link', { name: 'Update to 9.1.0' }).waitFor()
  await expectSound(page, 'completed')
  await button(progress, 'Load the portal anew').click()
  await release(page).getByText('Up to date').waitFor()
  answered(await relay.complete(jobId, leaseId, 0), 200)
})

test('the way back names the version that it leads to', async ({ open }) => {
  const page = await open('/settings/updates', { allow: replaced })
  await page.getByRole('button', { name: /^Go back to / }).click()
  const asked = page.getByRole('dialog', { name: /^Go back to \d/ })
  await button(asked, 'Go back').click()
  const progress = page.getByRole('region', { name: /^Back to .* from 9\.1\.0/ })
  await button(progress, 'Load the portal anew').waitFor()
  expect(await progress.innerText()).toContain('Completed')
  await button(release(page), 'Update to 9.1.0').waitFor()
  expect(await history(page).getByRole('row').count()).toBe(3)
})

test('where the releases cannot be read the page says so, with the trace, and shows what was found last', async ({
  platform,
  open,
}) => {
  const page = await open('/settings/updates', { allow: [...replaced, /^console error: /, /^answer 503 /] })
  await release(page).getByText('Update available').waitFor()
  await platform.stop()
  await platform.restart({ PLAT_RELEASE_SOURCE: '127.0.0.1:9/platform/releases' })
  await button(page, 'Check now').click()
  const alert = release(page).getByRole('alert')
  await alert.getByText('PLAT_REGISTRY_ALLOW').waitFor()
  expect(await alert.innerText()).toMatch(/Trace id\s+[0-9a-f]{32}/)
  expect(await release(page).innerText()).toMatch(/Newest version\s+9\.1\.0/)
})
