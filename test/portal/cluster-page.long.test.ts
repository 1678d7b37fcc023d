import { expect } from 'vitest'
import { expectStatus } from '../conformance/support/answer.ts'
import { waitFor } from '../support/wait-for.ts'
import { healthyRelay } from '../support/portal/fleet.ts'
import { button, dialog, field, heading, link, relayCommand, relayEnrolled, row } from '../support/portal/locators.ts'
import { waitForPage } from '../support/portal/open.ts'
import { requestsDuring } from '../support/portal/requests.ts'
import { test } from '../support/portal/shared.ts'

const tokenOf = (command: string): string => /PLAT_ENROLLMENT_TOKEN=(\S+)/.exec(command)?.[1] ?? ''

test('a new enrollment token replaces the old one, and the page shows the enrolled relay', async ({ open, api }) => {
  const { id, enrollmentToken } = await api.newCluster()
  const page = await open(`/clusters/${id}`)
  const sent = await requestsDuring(page, async () => {
    await button(page, 'New enrollment token').dblclick()
    await page.getByRole('group', { name: 'Relay command' }).waitFor()
  })
  expect(sent.filter((request) => request.startsWith('POST'))).toHaveLength(1)
  const token = tokenOf(await relayCommand(page))
  expect(token).not.toBe(enrollmentToken)
  await expect(api.enroll(enrollmentToken)).rejects.toThrow()
  const relay = await api.enroll(token, ['node-a', 'node-b'])
  expectStatus(await relay.heartbeat(), 200)
  await relayEnrolled(page)
  await page.getByRole('list', { name: 'Nodes' }).getByText('node-b').waitFor()
})

test('replacing a relay needs confirmation; the old relay does not count as the new one', async ({ open, api }) => {
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
})

test('a cluster is renamed and moved; a taken name is rejected at its field', async ({ open, api }) => {
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
  await save()
  await dialog(page).waitFor({ state: 'detached' })
  expect((await api.cluster(id)).siteId).toBeUndefined()
})

test('moving a cluster keeps a name that was changed at the same time', async ({ open, api }) => {
  const { id } = await api.newCluster()
  const { id: siteId, name: siteName } = await api.newSite()
  const page = await open(`/clusters/${id}`)
  await button(page, 'Edit cluster').click()
  await dialog(page).getByLabel('Site').selectOption(siteName)
  const name = api.newName()
  expectStatus(await (await api.admin).patch(`/api/v1/clusters/${id}`, { name }), 200)
  await page.getByText(name).first().waitFor({ state: 'attached' })
  await button(dialog(page), 'Save changes').click()
  await dialog(page).waitFor({ state: 'detached' })
  expect(await api.cluster(id)).toMatchObject({ name, siteId })
})

test('removing a cluster needs its name, and fails while jobs run', async ({ open, api }) => {
  const { clusterId } = await healthyRelay(api)
  const { name } = await api.cluster(clusterId)
  const jobId = await api.submit(clusterId)
  // The page may poll once more before it navigates.
  const removed = new RegExp(`^response 404 GET /api/v1/clusters/${clusterId}$`)
  const page = await open(`/clusters/${clusterId}`, { allow: [/^response 409 DELETE \/api\/v1\/clusters\//, removed] })
  await button(page, 'Remove cluster').click()
  const confirm = button(dialog(page), 'Remove cluster')
  const sent = await requestsDuring(page, async () => {
    await confirm.click()
    await dialog(page).getByText('The name does not match.').waitFor()
  })
  expect(sent.filter((request) => request.startsWith('DELETE'))).toEqual([])
  await dialog(page)
    .getByRole('textbox', { name: `Type ${name} to confirm` })
    .fill(name)
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

test('each tab has an address: nodes, timeline and jobs', async ({ open, api }) => {
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

test('times use the time zone of the browser', async ({ open, api }) => {
  const { id, registeredAt } = await api.newCluster()
  for (const timezone of ['Pacific/Kiritimati', 'America/New_York']) {
    const page = await open(`/clusters/${id}`, { timezone })
    const format = new Intl.DateTimeFormat('en', { dateStyle: 'medium', timeStyle: 'medium', timeZone: timezone })
    await page.getByText(format.format(new Date(registeredAt)), { exact: true }).waitFor()
  }
})

test('the status updates without a reload', async ({ open, api }) => {
  const relay = await healthyRelay(api)
  const page = await open(`/clusters/${relay.clusterId}`)
  await heading(page, 'Healthy').waitFor()
  expectStatus(await relay.goodbye(), 204)
  await heading(page, 'Offline').waitFor()
})

test('an unknown cluster links back to the list', async ({ open, api: _isSetUp }) => {
  const page = await open('/clusters/clus_01jd8w5k3zr9x2m4c7t6v0b1qa', {
    allow: [/^response 404 GET \/api\/v1\/clusters\//],
  })
  await page.getByText('This cluster does not exist').waitFor()
  await link(page, 'All clusters').click()
  await heading(page, 'Clusters').waitFor()
})
