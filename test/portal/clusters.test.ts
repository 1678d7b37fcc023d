import { expect } from 'vitest'
import { answered } from '../conformance/support/answer.ts'
import { isLong } from '../support/long.ts'
import { axe } from '../support/portal/axe.ts'
import { beating } from '../support/portal/fleet.ts'
import { settled } from '../support/portal/open.ts'
import { commandOf, dialog, enrolled, heading } from '../support/portal/parts.ts'
import { test } from '../support/portal/shared.ts'
import { requestsDuring } from '../support/portal/traffic.ts'
import { runRelayCommand } from '../support/relay-command.ts'
import { temporaryFolder } from '../support/temporary-folder.ts'

/** What an operator does with clusters: finds them, registers one, names sites and filters. */

const hostileName = '<img src=x onerror=__xss=1>'

test('from no clusters to one whose relay was started by the command that is shown', async ({
  open,
  api: _isSetUp,
}) => {
  const page = await open('/clusters')
  await page.getByText('No clusters yet').waitFor()
  await page.getByRole('link', { name: 'Register cluster' }).first().click()
  await heading(page, 'Register a cluster').waitFor()
  await page.getByRole('textbox', { name: 'Name' }).fill(hostileName)
  await page.getByRole('button', { name: 'New site' }).click()
  await dialog(page).getByRole('textbox', { name: 'Name of the new site' }).fill('<b>Site</b>')
  await dialog(page).getByRole('button', { name: 'Create site' }).click()
  await dialog(page).waitFor({ state: 'detached' })
  await expect.poll(() => page.getByLabel('Site').locator('option:checked').innerText()).toBe('<b>Site</b>')
  await axe(page)

  const sent = await requestsDuring(page, async () => {
    await page.getByRole('button', { name: 'Register cluster' }).dblclick()
    await page.getByText('Waiting for the relay').waitFor()
  })
  expect(sent.filter((request) => request.startsWith('POST'))).toEqual(['POST /api/v1/clusters'])
  const command = await commandOf(page)
  await page.getByRole('button', { name: 'Copy relay command' }).click()
  expect(await page.evaluate('navigator.clipboard.readText()')).toBe(command)
  await axe(page)

  await using resources = new AsyncDisposableStack()
  const folder = resources.use(await temporaryFolder())
  resources.use(runRelayCommand(command, folder.path))
  await enrolled(page).waitFor()
  expect(await page.getByRole('list', { name: 'Nodes' }).getByRole('listitem').count()).toBe(1)
  expect(await page.getByRole('link', { name: 'Run a job' }).getAttribute('href')).toMatch(
    /^\/jobs\/new\?clusterId=clus_/,
  )
  await page.getByRole('link', { name: 'Open cluster' }).click()
  await heading(page, hostileName).waitFor()
  await heading(page, 'Healthy').waitFor()
  await page.getByText('<b>Site</b>').waitFor()
  await page.goto('/clusters')
  await page.getByRole('link', { name: hostileName }).waitFor()
})

test('filters stand in the address, and survive a reload; so do saved ones, until they are removed', async ({
  open,
  api,
}) => {
  const { name } = await api.newCluster({ name: 'waiting-for-godot', type: 'CloudLocal' })
  const other = await beating(api)
  const page = await open('/clusters')
  const otherName: string = (await api.cluster(other.clusterId)).name
  await page.getByRole('link', { name: otherName }).waitFor()
  await page.getByLabel('Status').selectOption('Pending')
  await page.getByLabel('Type').selectOption('CloudLocal')
  const asked = await requestsDuring(page, async () => {
    await page.getByRole('searchbox', { name: 'Name' }).focus()
    // In one turn of the page: no machine is so slow that the letters are seconds apart.
    await page.evaluate(`for (const letter of 'GODOT') document.execCommand('insertText', false, letter)`)
    await page.waitForURL('**/clusters?*search=GODOT*')
    await page.getByRole('status').filter({ hasText: '1 cluster' }).waitFor()
  })
  expect(asked.filter((request) => request.includes('search='))).toHaveLength(1)
  await page.reload()
  await settled(page)
  await page.getByRole('link', { name }).waitFor()
  expect(await page.getByRole('link', { name: otherName }).count()).toBe(0)
  expect(await page.getByRole('searchbox', { name: 'Name' }).inputValue()).toBe('GODOT')
  expect(await page.getByLabel('Status').inputValue()).toBe('Pending')

  await page.getByRole('button', { name: 'Saved filters' }).click()
  await dialog(page).getByLabel('Save what is shown now as').fill('<i>godots</i>')
  await axe(page)
  await dialog(page).getByRole('button', { name: 'Save filter' }).click()
  await dialog(page).waitFor({ state: 'detached' })
  await page.goto('/clusters')
  await page.getByRole('link', { name: otherName }).waitFor()
  await page.getByRole('button', { name: 'Saved filters' }).click()
  await dialog(page).getByRole('button', { name: '<i>godots</i>', exact: false }).first().click()
  await page.waitForURL('**/clusters?status=Pending&type=CloudLocal&search=GODOT')
  await expect.poll(() => page.getByRole('link', { name: otherName }).count()).toBe(0)
  await page.getByRole('button', { name: 'Saved filters' }).click()
  await dialog(page).getByRole('button', { name: 'Remove filter <i>godots</i>' }).click()
  await expect.poll(() => dialog(page).getByRole('listitem').count()).toBe(0)
  expect(answered(await (await api.admin).get('/api/v1/users/me/saved-filters'), 200).items).toEqual([])
})

test.runIf(isLong)('where no cluster fits the list says so and leads back', async ({ open, api }) => {
  const { name } = await api.newCluster()
  const page = await open('/clusters?search=nobody-is-called-so')
  await page.getByText('No cluster fits').waitFor()
  await page.getByRole('button', { name: 'Clear the filters' }).click()
  await page.getByRole('link', { name }).waitFor()
  expect(new URL(page.url()).search).toBe('')
})

test.runIf(isLong)('what a saved filter of another program says is taken as far as it fits', async ({ open, api }) => {
  const admin = await api.admin
  const filter = { status: 'Nonsense', type: 'CloudLocal', search: ['x'], color: 'red' }
  answered(await admin.post('/api/v1/users/me/saved-filters', { name: 'odd', context: 'clusters', filter }), 201)
  answered(await admin.post('/api/v1/users/me/saved-filters', { name: 'of jobs', context: 'jobs', filter: {} }), 201)
  const page = await open('/clusters')
  await page.getByRole('button', { name: 'Saved filters' }).click()
  await dialog(page).getByRole('button', { name: /^odd/ }).click()
  await page.waitForURL('**/clusters?type=CloudLocal')
  await page.getByRole('button', { name: 'Saved filters' }).click()
  await dialog(page).getByRole('button', { name: /^odd/ }).waitFor()
  expect(await dialog(page).getByText('of jobs').count()).toBe(0)
})

test.runIf(isLong)('sites are created and removed; one that is used stays, and says why', async ({ open, api }) => {
  const { id: siteId, name: used } = await api.newSite()
  await api.newCluster({ siteId })
  const page = await open('/clusters', { allow: [/^answer 409 DELETE \/api\/v1\/sites\//] })
  await page.getByRole('button', { name: 'Sites' }).click()
  await dialog(page).getByRole('textbox', { name: 'Name of the new site' }).fill('Nowhere')
  await dialog(page).getByRole('button', { name: 'Create site' }).click()
  await dialog(page).getByRole('button', { name: 'Remove site Nowhere' }).click()
  await dialog(page).getByText('Nowhere').waitFor({ state: 'detached' })
  await dialog(page)
    .getByRole('button', { name: `Remove site ${used}` })
    .click()
  const note = dialog(page).getByRole('alert')
  await note.getByText('Clusters belong to this site').waitFor()
  expect(await note.getByText(/^Trace id/).innerText()).toMatch(/[0-9a-f]{32}/)
  await dialog(page).getByRole('listitem').filter({ hasText: used }).waitFor()
  await axe(page)
})

test.runIf(isLong)('whoever may only look is offered nothing else', async ({ open, api }) => {
  const { clusterId } = await beating(api)
  const { name } = await api.cluster(clusterId)
  await api.newSite()
  const as = await api.newPerson('Viewer')
  const page = await open('/clusters', { as })
  await page.getByRole('link', { name }).waitFor()
  expect(await page.getByRole('link', { name: 'Register cluster' }).count()).toBe(0)
  await page.getByRole('button', { name: 'Sites' }).click()
  await dialog(page).getByRole('listitem').first().waitFor()
  expect(await dialog(page).getByRole('button').allInnerTexts()).toEqual([''])
  await page.goto(`/clusters/${clusterId}?tab=jobs`)
  await page.getByText('No jobs yet').waitFor()
  const main = page.getByRole('main')
  expect(await main.getByRole('button', { name: /Edit|Remove|enrollment/ }).count()).toBe(0)
  expect(await main.getByRole('link', { name: /Run/ }).count()).toBe(0)
  await page.goto('/clusters/register')
  await page.getByText('You may not see this page').waitFor()
  await main.getByText('clusters:write').waitFor()
  expect(await main.getByRole('button').count()).toBe(0)
})

test.runIf(isLong)(
  'a list that cannot be read says why, with its trace id, and is read when it is tried again',
  async ({ open, api }) => {
    const { name } = await api.newCluster()
    const page = await open('/dashboard', { allow: [/^answer 500 GET \/api\/v1\/clusters\?/] })
    const traceId = 'b'.repeat(32)
    const body = JSON.stringify({ error: 'internal_error', message: 'It broke.', traceId })
    await page.route('**/api/v1/clusters?*', (route) =>
      route.fulfill({ status: 500, contentType: 'application/json', body }),
    )
    await page.getByRole('navigation', { name: 'Main' }).getByRole('link', { name: 'Clusters' }).click()
    await page.getByText(traceId).waitFor()
    await page.unroute('**/api/v1/clusters?*')
    await page.getByRole('button', { name: 'Try again' }).click()
    await page.getByRole('link', { name }).waitFor()
  },
)
