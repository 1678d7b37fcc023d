import { expect } from 'vitest'
import { expectStatus } from '../conformance/support/answer.ts'
import { isLong } from '../support/long.ts'
import { button, dialog, field, heading, link, relayCommand, relayEnrolled } from '../support/portal/locators.ts'
import { waitForPage } from '../support/portal/open.ts'
import { requestsDuring } from '../support/portal/requests.ts'
import { test } from '../support/portal/shared.ts'
import { runRelayCommand } from '../support/relay-command.ts'
import { temporaryFolder } from '../support/temporary-folder.ts'

const hostileName = '<img src=x onerror=__xss=1>'

test('registers a cluster at a new site; the shown command enrols its relay', async ({ open, api: _isSetUp }) => {
  const page = await open('/clusters')
  await page.getByText('No clusters yet').waitFor()
  await link(page, 'Register cluster').first().click()
  await field(page, 'Name').fill(hostileName)
  await button(page, 'New site').click()
  await field(dialog(page), 'Site name').fill('<b>Site</b>')
  await button(dialog(page), 'Create site').click()
  await dialog(page).waitFor({ state: 'detached' })
  await expect.poll(() => page.getByLabel('Site').locator('option:checked').innerText()).toBe('<b>Site</b>')

  const sent = await requestsDuring(page, async () => {
    await button(page, 'Register cluster').dblclick()
    await page.getByText('Waiting for the relay').waitFor()
  })
  expect(sent.filter((request) => request.startsWith('POST'))).toEqual(['POST /api/v1/clusters'])
  const command = await relayCommand(page)
  await button(page, 'Copy relay command').click()
  expect(await page.evaluate('navigator.clipboard.readText()')).toBe(command)

  await using resources = new AsyncDisposableStack()
  const folder = resources.use(await temporaryFolder())
  resources.use(runRelayCommand(command, folder.path))
  await relayEnrolled(page)
  expect(await page.getByRole('list', { name: 'Nodes' }).getByRole('listitem').count()).toBe(1)
  expect(await link(page, 'Run a job').getAttribute('href')).toMatch(/^\/jobs\/new\?clusterId=clus_/)
  await link(page, 'Open cluster').click()
  await heading(page, hostileName).getByText('Healthy').waitFor()
  await page.getByText('<b>Site</b>').waitFor()
  await page.goto('/clusters')
  await link(page, hostileName).waitFor()
})

test('filters are part of the address, and can be saved, applied and removed', async ({ open, api }) => {
  const { name } = await api.newCluster({ name: 'waiting-for-godot', type: 'CloudLocal' })
  const other = link(await open('/clusters'), (await api.newCluster()).name)
  const page = other.page()
  await other.waitFor()
  await field(page, 'Status').selectOption('Pending')
  await field(page, 'Type').selectOption('CloudLocal')
  const sent = await requestsDuring(page, async () => {
    await page.getByRole('searchbox', { name: 'Name' }).focus()
    // In one task, so that a slow machine does not send requests between the letters.
    await page.evaluate(`for (const letter of 'GODOT') document.execCommand('insertText', false, letter)`)
    await page.waitForURL('**/clusters?*search=GODOT*')
    await page.getByRole('status').filter({ hasText: '1 cluster' }).waitFor()
  })
  expect(sent.filter((request) => request.includes('search='))).toHaveLength(1)
  await page.reload()
  await waitForPage(page)
  await link(page, name).waitFor()
  expect(await other.count()).toBe(0)
  expect(await page.getByRole('searchbox', { name: 'Name' }).inputValue()).toBe('GODOT')
  expect(await field(page, 'Status').inputValue()).toBe('Pending')

  await button(page, 'Saved filters').click()
  await field(dialog(page), 'Save current filters as').fill('<i>godots</i>')
  await button(dialog(page), 'Save filter').click()
  await dialog(page).waitFor({ state: 'detached' })
  await page.goto('/clusters')
  await other.waitFor()
  await button(page, 'Saved filters').click()
  await dialog(page).getByRole('button', { name: '<i>godots</i>' }).first().click()
  await page.waitForURL('**/clusters?status=Pending&type=CloudLocal&search=GODOT')
  await expect.poll(() => other.count()).toBe(0)
  await button(page, 'Saved filters').click()
  await button(dialog(page), 'Remove filter <i>godots</i>').click()
  await expect.poll(() => dialog(page).getByRole('listitem').count()).toBe(0)
  expect(expectStatus(await (await api.admin).get('/api/v1/users/me/saved-filters'), 200).items).toEqual([])
})

test.runIf(isLong)('an empty result offers to clear the filters', async ({ open, api }) => {
  const { name } = await api.newCluster()
  const page = await open('/clusters?search=no-such-cluster')
  await page.getByText('No matching clusters').waitFor()
  await button(page, 'Clear filters').click()
  await link(page, name).waitFor()
  expect(new URL(page.url()).search).toBe('')
})

test.runIf(isLong)('ignores unknown values of a saved filter', async ({ open, api }) => {
  const admin = await api.admin
  const filter = { status: 'Nonsense', type: 'CloudLocal', search: ['x'], color: 'red' }
  expectStatus(await admin.post('/api/v1/users/me/saved-filters', { name: 'odd', context: 'clusters', filter }), 201)
  expectStatus(
    await admin.post('/api/v1/users/me/saved-filters', { name: 'of jobs', context: 'jobs', filter: {} }),
    201,
  )
  const page = await open('/clusters')
  await button(page, 'Saved filters').click()
  expect(await dialog(page).getByText('of jobs').count()).toBe(0)
  await dialog(page).getByRole('button', { name: /^odd/ }).click()
  await page.waitForURL('**/clusters?type=CloudLocal')
})

test.runIf(isLong)('sites are created and removed; a site in use cannot be removed', async ({ open, api }) => {
  const { id: siteId, name: used } = await api.newSite()
  await api.newCluster({ siteId })
  const page = await open('/clusters', { allow: [/^response 409 DELETE \/api\/v1\/sites\//] })
  await button(page, 'Sites').click()
  await field(dialog(page), 'Site name').fill('Nowhere')
  await button(dialog(page), 'Create site').click()
  await button(dialog(page), 'Remove site Nowhere').click()
  await dialog(page).getByText('Nowhere').waitFor({ state: 'detached' })
  await button(dialog(page), `Remove site ${used}`).click()
  const alert = dialog(page).getByRole('alert')
  await alert.getByText('Clusters belong to this site').waitFor()
  expect(await alert.getByText(/^Trace id/).innerText()).toMatch(/[0-9a-f]{32}/)
  await dialog(page).getByRole('listitem').filter({ hasText: used }).waitFor()
})
