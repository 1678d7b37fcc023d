import { expect } from 'vitest'
import { jobFor, submitBatch } from '../conformance/support/batch.ts'
import { healthyRelay } from '../support/portal/fleet.ts'
import { button, dialog, heading, link, mainLink } from '../support/portal/locators.ts'
import { waitForPage } from '../support/portal/open.ts'
import { testAsAdministrator as test } from '../support/portal/shared.ts'

/** Pages and actions that the role of a user does not allow are not offered. */

test.for([
  ['Viewer', '/clusters/register', 'clusters:write'],
  ['Viewer', '/settings/audit', 'audit:read'],
  ['Viewer', '/settings/identity', 'platform:admin'],
  ['Viewer', '/settings/webhooks', 'users:admin'],
  ['OrgAdmin', '/settings/updates', 'platform:admin'],
  ['Operator', '/settings/users', 'users:admin'],
  ['Operator', '/settings/organisations', 'platform:admin'],
] as const)('%s cannot open %s', async ([role, path, permission], { open, api }) => {
  const page = await open(path, { as: await api.newPerson(role) })
  await page.getByText('Access denied').waitFor()
  await page.getByText(permission).waitFor()
  expect(await page.getByRole('main').getByRole('button').count()).toBe(0)
  expect(await mainLink(page, await heading(page, /./).innerText()).count()).toBe(0)
})

test('a viewer is offered no changes', async ({ open, api, seed: _seeded }) => {
  const { clusterId } = await healthyRelay(api)
  const jobId = await api.submit(clusterId)
  const { batchId } = await submitBatch(api, { jobs: [jobFor(clusterId)] })
  await api.newSite()
  const page = await open('/clusters', { as: await api.newPerson('Viewer') })
  const main = page.getByRole('main')
  await button(page, 'Sites').click()
  await dialog(page).getByRole('listitem').first().waitFor()
  expect(await dialog(page).getByRole('button').allInnerTexts()).toEqual([''])
  const paths = [
    '/clusters',
    `/clusters/${clusterId}`,
    `/jobs/${jobId}`,
    `/jobs/batches/${batchId}`,
    '/jobs',
    '/modules?module=hello',
  ]
  const changes = /^(Register|Run|Edit|Remove|Cancel|Retry|Install|Uninstall|New|Scan)/
  for (const path of paths) {
    await page.goto(path)
    await waitForPage(page)
    if (path.includes('module=')) await dialog(page).waitFor()
    expect(await main.getByRole('button', { name: changes }).count(), path).toBe(0)
    expect(await main.getByRole('link', { name: /^(Register|Run)/ }).count(), path).toBe(0)
    expect(await page.getByRole('dialog').getByRole('button', { name: changes }).count(), path).toBe(0)
  }
  await page.goto('/dashboard')
  await button(page, 'Edit dashboard').click()
  await page.locator('.react-grid-item').first().waitFor()
  expect(await page.getByText('Platform update').count()).toBe(0)
  expect(await link(page, 'Users').count()).toBe(0)
})

test('an auditor reads the audit trail but adds no entries', async ({ open, api }) => {
  const page = await open('/settings/audit', { as: await api.newPerson('Auditor') })
  await page.getByRole('table', { name: 'Audit entries' }).getByRole('row').nth(1).waitFor()
  expect(await button(page, 'Add entry').count()).toBe(0)
})

test('an organisation administrator cannot grant PlatformAdmin', async ({ open, api }) => {
  const page = await open('/settings/users', { as: await api.newPerson('OrgAdmin') })
  await button(page, 'Create user').click()
  expect(
    await dialog(page)
      .getByRole('checkbox', { name: /^PlatformAdmin/ })
      .isDisabled(),
  ).toBe(true)
  expect(
    await dialog(page)
      .getByRole('checkbox', { name: /^OrgAdmin/ })
      .isDisabled(),
  ).toBe(false)
})
