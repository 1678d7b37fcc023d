import { expect } from 'vitest'
import { answered } from '../conformance/support/answer.ts'
import { until } from '../conformance/support/until.ts'
import { axe } from '../support/portal/axe.ts'
import { beating } from '../support/portal/fleet.ts'
import { reachingOut } from '../support/portal/layout.ts'
import { settled } from '../support/portal/open.ts'
import { commandOf, dialog, enrolled, heading } from '../support/portal/parts.ts'
import { test } from '../support/portal/shared.ts'
import { requestsDuring } from '../support/portal/traffic.ts'

/** The page of a cluster: what it is, what happened to it, and what an operator does with it. */

const tokenOf = (command: string): string => /PLAT_ENROLLMENT_TOKEN=(\S+)/.exec(command)?.[1] ?? ''

test('who left before the relay was there gets a new token, the old one stops, and the page notices the relay', async ({
  open,
  api,
}) => {
  const { id, name, enrollmentToken } = await api.newCluster()
  const page = await open(`/clusters/${id}`)
  await heading(page, name).waitFor()
  const sent = await requestsDuring(page, async () => {
    await page.getByRole('button', { name: 'New enrollment token' }).dblclick()
    await page.getByRole('group', { name: 'Relay command' }).waitFor()
  })
  expect(sent.filter((request) => request.startsWith('POST'))).toHaveLength(1)
  const token = tokenOf(await commandOf(page))
  expect(token).not.toBe(enrollmentToken)
  await expect(api.enroll(enrollmentToken)).rejects.toThrow()
  const relay = await api.enroll(token, ['node-a', 'node-b'])
  answered(await relay.beat(), 200)
  await enrolled(page).waitFor()
  await page.getByRole('list', { name: 'Nodes' }).getByText('node-b').waitFor()
})

test('a relay is replaced only after one was asked, and the old one counts as replaced when the new one is there', async ({
  open,
  api,
}) => {
  const relay = await beating(api)
  const page = await open(`/clusters/${relay.clusterId}`)
  await page.getByRole('button', { name: 'New enrollment token' }).click()
  await dialog(page).getByText('Replace the relay?').waitFor()
  await axe(page)
  await dialog(page).getByRole('button', { name: 'New enrollment token' }).click()
  await page.getByText('Waiting for the relay').waitFor()
  answered(await relay.beat(), 200)
  const next = await api.enroll(tokenOf(await commandOf(page)))
  answered(await next.beat(), 200)
  await enrolled(page).waitFor()
})

test('a cluster is renamed and moved; a name that is taken is refused where it was typed', async ({ open, api }) => {
  const { id, name } = await api.newCluster()
  const { name: taken } = await api.newCluster()
  const { id: siteId, name: siteName } = await api.newSite()
  const page = await open(`/clusters/${id}`, { allow: [/^answer 409 PATCH /, /^answer 400 PATCH /] })
  await heading(page, name).waitFor()
  await page.getByRole('button', { name: 'Edit cluster' }).click()
  const field = dialog(page).getByRole('textbox', { name: 'Name' })
  await field.fill('x')
  await dialog(page).getByRole('button', { name: 'Save changes' }).click()
  await expect.poll(() => field.getAttribute('aria-invalid')).toBe('true')
  await field.fill(taken)
  await dialog(page).getByRole('button', { name: 'Save changes' }).click()
  await dialog(page).getByText('Another cluster of the organisation has this name').waitFor()
  await field.fill('<b>renamed</b>')
  await dialog(page).getByLabel('Site').selectOption(siteName)
  await dialog(page).getByRole('button', { name: 'Save changes' }).click()
  await heading(page, '<b>renamed</b>').waitFor()
  expect(await api.cluster(id)).toMatchObject({ name: '<b>renamed</b>', siteId })
  await page.getByRole('button', { name: 'Edit cluster' }).click()
  await dialog(page).getByLabel('Site').selectOption('No site')
  await dialog(page).getByRole('button', { name: 'Save changes' }).click()
  await dialog(page).waitFor({ state: 'detached' })
  expect((await api.cluster(id)).siteId).toBeUndefined()
})

test('whoever moves a cluster does not undo the name that somebody else has given it meanwhile', async ({
  open,
  api,
}) => {
  const { id, name } = await api.newCluster()
  const { id: siteId, name: siteName } = await api.newSite()
  const page = await open(`/clusters/${id}`)
  await heading(page, name).waitFor()
  await page.getByRole('button', { name: 'Edit cluster' }).click()
  await dialog(page).getByLabel('Site').selectOption(siteName)
  const given = api.newName()
  answered(await (await api.admin).patch(`/api/v1/clusters/${id}`, { name: given }), 200)
  await page.getByText(given).first().waitFor({ state: 'attached' })
  await dialog(page).getByRole('button', { name: 'Save changes' }).click()
  await dialog(page).waitFor({ state: 'detached' })
  expect(await api.cluster(id)).toMatchObject({ name: given, siteId })
})

test('a cluster is removed by typing its name; not while jobs run, which are shown', async ({ open, api }) => {
  const { clusterId } = await beating(api)
  const { name } = await api.cluster(clusterId)
  const jobId = await api.submit(clusterId)
  // The cluster may be gone a moment before its page is left.
  const gone = new RegExp(`^answer 404 GET /api/v1/clusters/${clusterId}$`)
  const page = await open(`/clusters/${clusterId}`, { allow: [/^answer 409 DELETE \/api\/v1\/clusters\//, gone] })
  await page.getByRole('button', { name: 'Remove cluster' }).click()
  const confirm = dialog(page).getByRole('button', { name: 'Remove cluster' })
  const typed = dialog(page).getByRole('textbox', { name: `Type ${name} to confirm` })
  const sent = await requestsDuring(page, async () => {
    await confirm.click()
    await dialog(page).getByText('This is not the name of the cluster.').waitFor()
  })
  expect(sent.filter((request) => request.startsWith('DELETE'))).toEqual([])
  await typed.fill(name)
  await confirm.click()
  await dialog(page).getByText('The cluster has queued or running jobs').waitFor()
  const jobs = dialog(page).getByRole('link', { name: 'Show the jobs of this cluster' })
  expect(await jobs.getAttribute('href')).toBe(`/jobs?clusterId=${clusterId}`)
  await axe(page)
  answered(await (await api.admin).post(`/api/v1/jobs/${jobId}/cancel`), 202)
  await until('the job has ended', async () => (await api.job(jobId)).completedAt !== undefined)
  await confirm.click()
  await page.waitForURL('**/clusters')
  await page.getByText('The cluster was removed').waitFor()
  await settled(page)
  expect(await page.getByRole('link', { name }).count()).toBe(0)
  expect((await (await api.admin).get(`/api/v1/clusters/${clusterId}`)).status).toBe(404)
})

test('the page of a cluster shows its nodes, what happened to it and its jobs, each at an address', async ({
  open,
  api,
}) => {
  const { clusterId } = await beating(api, ['node-a', '<b>node</b>'])
  const jobId = await api.submit(clusterId)
  const page = await open(`/clusters/${clusterId}`)
  await page.getByText('2 of 2 online').waitFor()
  await page.getByText('conformance', { exact: true }).waitFor()
  await axe(page)
  await page.getByRole('tab', { name: 'Nodes (2)' }).click()
  await page.getByRole('cell', { name: '<b>node</b>' }).waitFor()
  await page.waitForURL('**?tab=nodes')
  await axe(page)
  await page.getByRole('tab', { name: 'Timeline' }).click()
  await page.getByRole('row').filter({ hasText: 'Became Healthy' }).waitFor()
  await page.reload()
  await page.getByRole('row').filter({ hasText: 'cluster.register' }).filter({ hasText: 'you' }).waitFor()
  expect(await page.getByRole('tab', { name: 'Timeline' }).getAttribute('aria-selected')).toBe('true')
  await axe(page)
  await page.getByRole('tab', { name: 'Jobs' }).click()
  expect(await page.getByRole('link', { name: jobId }).getAttribute('href')).toBe(`/jobs/${jobId}`)
  await page.getByRole('link', { name: /^All jobs of this cluster/ }).waitFor()
  await axe(page)
  for (const tab of ['overview', 'nodes', 'timeline', 'jobs']) {
    await page.setViewportSize({ width: 360, height: 800 })
    await page.goto(`/clusters/${clusterId}?tab=${tab}`)
    await settled(page)
    expect(await reachingOut(page)).toEqual([])
  }
})

test('times are those of the zone that the user is in', async ({ open, api }) => {
  const { id, registeredAt } = await api.newCluster()
  for (const timezone of ['Pacific/Kiritimati', 'America/New_York']) {
    const page = await open(`/clusters/${id}`, { timezone })
    const shown = new Intl.DateTimeFormat('en', { dateStyle: 'medium', timeStyle: 'medium', timeZone: timezone })
    await page.getByText(shown.format(new Date(registeredAt)), { exact: true }).waitFor()
  }
})

test('a status that changes is seen without a reload', async ({ open, api }) => {
  const relay = await beating(api)
  const page = await open(`/clusters/${relay.clusterId}`)
  await heading(page, 'Healthy').waitFor()
  answered(await relay.goodbye(), 204)
  await heading(page, 'Offline').waitFor()
})

test('a cluster that is not there says so', async ({ open, api: _isSetUp }) => {
  const page = await open('/clusters/clus_01jd8w5k3zr9x2m4c7t6v0b1qa', {
    allow: [/^answer 404 GET \/api\/v1\/clusters\//],
  })
  await page.getByText('There is no such cluster').waitFor()
  await page.getByRole('link', { name: 'All clusters' }).click()
  await heading(page, 'Clusters').waitFor()
})
