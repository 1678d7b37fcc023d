import { expect } from 'vitest'
import { expectStatus } from '../conformance/support/answer.ts'
import { isLong } from '../support/long.ts'
import {
  button,
  dialog,
  field,
  heading,
  link,
  openRegistration,
  relayCommand,
  relayEnrolled,
  row,
} from '../support/portal/locators.ts'
import { healthyRelay } from '../support/portal/fleet.ts'
import { waitForPage } from '../support/portal/open.ts'
import { requestsDuring } from '../support/portal/requests.ts'
import { test } from '../support/portal/test.ts'
import { runRelayCommand } from '../support/relay-command.ts'
import { waitFor } from '../support/wait-for.ts'
import { temporaryFolder } from '../support/temporary-folder.ts'

const hostileName = '<img src=x onerror=__xss=1>'

test.runIf(isLong)(
  'registers a cluster at a new site; the shown command enrols its relay',
  async ({ open, api: _isSetUp }) => {
    const page = await open('/clusters')
    await page.getByText('No clusters yet').waitFor()
    await openRegistration(page)
    await field(page, 'Name').fill(hostileName)
    await button(page, 'New site').click()
    await field(dialog(page), 'Site name').fill('<b>Site</b>')
    await button(dialog(page), 'Create site').click()
    await dialog(page).waitFor({ state: 'detached' })
    await expect.poll(() => page.getByLabel('Site').locator('option:checked').innerText()).toBe('<b>Site</b>')

    const sentRequests = await requestsDuring(page, async () => {
      await button(page, 'Register cluster').dblclick()
      await page.getByText('Waiting for the relay').waitFor()
    })
    expect(sentRequests.filter((request) => request.startsWith('POST'))).toEqual(['POST /api/v1/clusters'])
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
  },
)

test('an enrollment key is shown once, enrolls a relay that is then approved, and is revoked', async ({
  open,
  api,
}) => {
  const page = await open('/clusters/enrollment-keys')
  await button(page, 'Create enrollment key').first().click()
  await field(dialog(page), 'Name').fill('<b>Edge</b>')
  await dialog(page).getByLabel('Names of the clusters').fill('edge-{hostname}')
  await dialog(page)
    .getByRole('checkbox', { name: /needs approval/ })
    .check()
  await button(dialog(page), 'Create').click()
  const command = await relayCommand(page)
  await button(dialog(page), 'Done').click()
  await using resources = new AsyncDisposableStack()
  resources.use(runRelayCommand(command, resources.use(await temporaryFolder()).path))
  await waitFor('enrollment', async () => {
    const { items } = expectStatus(await (await api.admin).get('/api/v1/clusters?search=edge-'), 200)
    return items.length === 1
  })
  await page.goto('/clusters?search=edge-')
  await link(page, /^edge-/).click()
  await button(page, 'Approve cluster').click()
  await button(dialog(page), 'Approve cluster').click()
  await page.getByText('Approval needed').waitFor({ state: 'detached' })
  await page.locator('h1').getByText('Healthy').waitFor()
  await page.goto('/clusters/enrollment-keys')
  await row(page, '<b>Edge</b>').filter({ hasText: '1 of 100' }).waitFor()
  await button(page, 'Revoke <b>Edge</b>').click()
  await button(dialog(page), 'Revoke').click()
  await page.getByText('No enrollment keys').waitFor()
})

test.runIf(isLong)('filters are part of the address, and can be saved, applied and removed', async ({ open, api }) => {
  const { name } = await api.newCluster({ name: 'waiting-for-godot', type: 'CloudLocal' })
  const otherLink = link(await open('/clusters'), (await api.newCluster()).name)
  const page = otherLink.page()
  await otherLink.waitFor()
  await field(page, 'Status').selectOption('Pending')
  await field(page, 'Type').selectOption('CloudLocal')
  const sentRequests = await requestsDuring(page, async () => {
    await page.getByRole('searchbox', { name: 'Name' }).focus()
    // Inserts all letters in one task, so that even a slow page sends no request between two letters.
    await page.evaluate(`for (const letter of 'GODOT') document.execCommand('insertText', false, letter)`)
    await page.waitForURL('**/clusters?*search=GODOT*')
    await page.getByRole('status').filter({ hasText: '1 cluster' }).waitFor()
  })
  expect(sentRequests.filter((request) => request.includes('search='))).toHaveLength(1)
  await page.reload()
  await waitForPage(page)
  await link(page, name).waitFor()
  expect(await otherLink.count()).toBe(0)
  expect(await page.getByRole('searchbox', { name: 'Name' }).inputValue()).toBe('GODOT')
  expect(await field(page, 'Status').inputValue()).toBe('Pending')

  await button(page, 'Saved filters').click()
  // Wait for the list: when it loads, the button below the list moves.
  await dialog(page).getByRole('list', { name: 'Saved filters' }).waitFor({ state: 'attached' })
  await field(dialog(page), 'Save current filters as').fill('<i>godots</i>')
  await button(dialog(page), 'Save filter').click()
  await dialog(page).waitFor({ state: 'detached' })
  await page.goto('/clusters')
  await otherLink.waitFor()
  await button(page, 'Saved filters').click()
  await dialog(page).getByRole('button', { name: '<i>godots</i>' }).first().click()
  await page.waitForURL('**/clusters?status=Pending&type=CloudLocal&search=GODOT')
  await expect.poll(() => otherLink.count()).toBe(0)
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
  expect(await alert.textContent()).toMatch(/Trace id\s*[0-9a-f]{32}/)
  await dialog(page).getByRole('listitem').filter({ hasText: used }).waitFor()
})

const tokenOf = (command: string): string => /PLAT_ENROLLMENT_TOKEN=(\S+)/.exec(command)?.[1] ?? ''

test.runIf(isLong)(
  'a new enrollment token replaces the old one, and the page shows the enrolled relay',
  async ({ open, api }) => {
    const { id, enrollmentToken } = await api.newCluster()
    const page = await open(`/clusters/${id}`)
    const sentRequests = await requestsDuring(page, async () => {
      await button(page, 'New enrollment token').dblclick()
      await page.getByRole('group', { name: 'Relay command' }).waitFor()
    })
    expect(sentRequests.filter((request) => request.startsWith('POST'))).toHaveLength(1)
    const token = tokenOf(await relayCommand(page))
    expect(token).not.toBe(enrollmentToken)
    await expect(api.enroll(enrollmentToken)).rejects.toThrow()
    const relay = await api.enroll(token, ['node-a', 'node-b'])
    expectStatus(await relay.heartbeat(), 200)
    await relayEnrolled(page)
    await page.getByRole('list', { name: 'Nodes' }).getByText('node-b').waitFor()
  },
)

test.runIf(isLong)(
  'replacing a relay needs confirmation; the old relay does not count as the new one',
  async ({ open, api }) => {
    const relay = await healthyRelay(api)
    const page = await open(`/clusters/${relay.clusterId}`)
    await button(page, 'New enrollment token').click()
    await dialog(page).getByText('Replace the relay?').waitFor()
    await button(dialog(page), 'New enrollment token').click()
    await page.getByText('Waiting for the relay').waitFor()
    expectStatus(await relay.heartbeat(), 200)
    const next = await api.enroll(tokenOf(await relayCommand(page)))
    expectStatus(await next.heartbeat(), 200)
    await relayEnrolled(page)
  },
)

test.runIf(isLong)(
  'a cluster is renamed and moved; an edit keeps concurrent changes of other fields',
  async ({ open, api }) => {
    const { id } = await api.newCluster()
    const { name: taken } = await api.newCluster()
    const { id: siteId, name: siteName } = await api.newSite()
    const page = await open(`/clusters/${id}`, { allow: [/^response 40[09] PATCH /] })
    const save = () => button(dialog(page), 'Save changes').click()
    await button(page, 'Edit cluster').click()
    const name = field(dialog(page), 'Name')
    await name.fill('x')
    await save()
    await expect.poll(() => name.getAttribute('aria-invalid')).toBe('true')
    await name.fill(taken)
    await save()
    await dialog(page).getByText('Another cluster of the organisation has this name').waitFor()
    await name.fill('<b>renamed</b>')
    await dialog(page).getByLabel('Site').selectOption(siteName)
    await save()
    await heading(page, '<b>renamed</b>').waitFor()
    expect(await api.cluster(id)).toMatchObject({ name: '<b>renamed</b>', siteId })
    await button(page, 'Edit cluster').click()
    await dialog(page).getByLabel('Site').selectOption('No site')
    const otherName = api.newName()
    expectStatus(await (await api.admin).patch(`/api/v1/clusters/${id}`, { name: otherName }), 200)
    await page.getByText(otherName).first().waitFor({ state: 'attached' })
    await save()
    await dialog(page).waitFor({ state: 'detached' })
    const cluster = await api.cluster(id)
    expect([cluster.name, cluster.siteId]).toEqual([otherName, undefined])
  },
)

test.runIf(isLong)('removing a cluster needs its name, and fails while jobs run', async ({ open, api }) => {
  const { clusterId } = await healthyRelay(api)
  const { name } = await api.cluster(clusterId)
  const jobId = await api.submit(clusterId)
  // The page may poll once more before it navigates.
  const notFoundError = new RegExp(`^response 404 GET /api/v1/clusters/${clusterId}$`)
  const page = await open(`/clusters/${clusterId}`, {
    allow: [/^response 409 DELETE \/api\/v1\/clusters\//, notFoundError],
  })
  await button(page, 'Remove cluster').click()
  const confirm = button(dialog(page), 'Remove cluster')
  const sentRequests = await requestsDuring(page, async () => {
    await confirm.click()
    await dialog(page).getByText('The name does not match.').waitFor()
  })
  expect(sentRequests.filter((request) => request.startsWith('DELETE'))).toEqual([])
  await field(dialog(page), `Type ${name} to confirm`).fill(name)
  await confirm.click()
  await dialog(page).getByText('The cluster has queued or running jobs').waitFor()
  const jobs = link(dialog(page), 'Show the jobs of this cluster')
  expect(await jobs.getAttribute('href')).toBe(`/jobs?clusterId=${clusterId}`)
  expectStatus(await (await api.admin).post(`/api/v1/jobs/${jobId}/cancel`), 202)
  await waitFor('job to end', async () => (await api.job(jobId)).completedAt !== undefined)
  await confirm.click()
  await page.waitForURL('**/clusters')
  await page.getByText('Cluster removed').waitFor()
  await waitForPage(page)
  expect(await link(page, name).count()).toBe(0)
  expect((await (await api.admin).get(`/api/v1/clusters/${clusterId}`)).status).toBe(404)
})

test.runIf(isLong)('each tab has its own URL: nodes, timeline and jobs', async ({ open, api }) => {
  const { clusterId } = await healthyRelay(api, ['node-a', '<b>node</b>'])
  const jobId = await api.submit(clusterId)
  const page = await open(`/clusters/${clusterId}`)
  await page.getByText('2 of 2 online').waitFor()
  await page.getByText('conformance', { exact: true }).waitFor()
  await page.getByRole('tab', { name: 'Nodes (2)' }).click()
  await page.getByRole('cell', { name: '<b>node</b>' }).waitFor()
  await page.waitForURL('**?tab=nodes')
  await page.getByRole('tab', { name: 'Timeline' }).click()
  await row(page, 'Became Healthy').waitFor()
  await page.reload()
  await row(page, 'cluster.register').filter({ hasText: 'you' }).waitFor()
  expect(await page.getByRole('tab', { name: 'Timeline' }).getAttribute('aria-selected')).toBe('true')
  await page.getByRole('tab', { name: 'Jobs' }).click()
  expect(await page.getByRole('link', { name: jobId }).getAttribute('href')).toBe(`/jobs/${jobId}`)
  await page.getByRole('link', { name: /^All jobs of this cluster/ }).waitFor()
})

test.runIf(isLong)('times use the time zone of the browser', async ({ open, api }) => {
  const { id, registeredAt } = await api.newCluster()
  for (const timezone of ['Pacific/Kiritimati', 'America/New_York']) {
    const page = await open(`/clusters/${id}`, { timezone })
    const format = new Intl.DateTimeFormat('en', { dateStyle: 'medium', timeStyle: 'medium', timeZone: timezone })
    await page.getByText(format.format(new Date(registeredAt)), { exact: true }).waitFor()
  }
})

test.runIf(isLong)('the status updates without a reload', async ({ open, api }) => {
  const relay = await healthyRelay(api)
  const page = await open(`/clusters/${relay.clusterId}`)
  await heading(page, 'Healthy').waitFor()
  expectStatus(await relay.goodbye(), 204)
  await heading(page, 'Offline').waitFor()
})

test.runIf(isLong)('an unknown cluster links back to the list', async ({ open, api: _isSetUp }) => {
  const page = await open('/clusters/clus_01jd8w5k3zr9x2m4c7t6v0b1qa', {
    allow: [/^response 404 GET \/api\/v1\/clusters\//],
  })
  await page.getByText('This cluster does not exist').waitFor()
  await link(page, 'All clusters').click()
  await heading(page, 'Clusters').waitFor()
})
