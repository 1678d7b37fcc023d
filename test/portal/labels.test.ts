import type { Page } from 'playwright-core'
import { expect } from 'vitest'
import { expectStatus } from '../conformance/support/answer.ts'
import type { Platform } from '../conformance/support/platform.ts'
import { isLong } from '../support/long.ts'
import { appearanceErrors, axeErrors } from '../support/portal/accessibility.ts'
import { healthyRelay, seedFleet } from '../support/portal/fleet.ts'
import { button, dialog, field, heading, link, row } from '../support/portal/locators.ts'
import { errorsOf, waitForPage } from '../support/portal/open.ts'
import { holdRequests, requestsDuring } from '../support/portal/requests.ts'
import { test } from '../support/portal/test.ts'

const selectorField = (page: Page) => page.getByRole('combobox', { name: 'Label selector' })
const labelsOf = async (api: Platform, id: string) => {
  const labels = Object.entries((await api.cluster(id)).labels)
  return Object.fromEntries(labels.filter(([key]) => !key.startsWith('platform/')))
}

test.runIf(isLong)('labels are edited; an edit keeps concurrent changes of other labels', async ({ open, api }) => {
  const { id } = await api.newCluster({ labels: { tier: 'web' } })
  const page = await open(`/clusters/${id}`)
  await button(page, 'Edit labels').click()
  const key = field(dialog(page), 'Key')
  await key.fill('platform/os')
  await dialog(page).getByText('The platform sets labels with this key.').waitFor()
  await key.fill('env')
  await field(dialog(page), 'Value').fill('prod')
  await button(dialog(page), 'Remove label tier').click()
  expectStatus(await (await api.admin).patch(`/api/v1/clusters/${id}`, { labels: { owner: 'ann' } }), 200)
  await button(dialog(page), 'Save labels').click()
  await dialog(page).waitFor({ state: 'detached' })
  expect(await labelsOf(api, id)).toEqual({ env: 'prod', owner: 'ann' })
  await link(page, 'env=prod').click()
  await page.waitForURL('**/clusters?selector=env%3Dprod')
})

test('a selector is completed, checked and counted while the user types', async ({ open, api }) => {
  const { name } = await api.newCluster({ labels: { zone: 'north', size: 's' } })
  const { name: otherName } = await api.newCluster({ labels: { zone: 'south' } })
  const page = await open('/clusters')
  const selector = selectorField(page)
  await selector.fill('zone=north,,size')
  await page.getByText('At character 12').waitFor()
  expect(await selector.getAttribute('aria-invalid')).toBe('true')
  await selector.fill('zo')
  await page.getByRole('option', { name: /^zone/ }).waitFor()
  await selector.press('ArrowDown')
  await selector.press('Enter')
  await page.getByRole('option', { name: /^zone=south/ }).click()
  expect(await selector.inputValue()).toBe('zone=south')
  await page.getByText(`1 cluster: ${otherName}.`).waitFor()
  const sentRequests = await requestsDuring(page, async () => {
    // Inserts all letters in one task, so that even a slow page sends no request between two letters.
    await page.evaluate(`for (const letter of ',!size') document.execCommand('insertText', false, letter)`)
    await page.getByText('Press Enter').waitFor()
    await selector.press('Enter')
    await page.waitForURL('**/clusters?selector=zone%3Dsouth%2C%21size')
  })
  expect(sentRequests.filter((request) => request.includes('resolve')).length).toBeLessThan(2)
  await link(page, otherName).waitFor()
  await expect.poll(() => link(page, name).count()).toBe(0)

  await button(page, 'Columns').click()
  await dialog(page).getByRole('checkbox', { name: 'Site' }).uncheck()
  await page.reload()
  await waitForPage(page)
  await row(page, otherName).filter({ hasText: 'zone=south' }).waitFor()
  expect(await page.getByRole('columnheader').allInnerTexts()).not.toContain('Site')
})

test('selected and all matching clusters are labelled, and get a script', async ({ open, api }) => {
  const labels = { fleet: 'a' }
  const [cluster, otherCluster] = [await api.newCluster({ labels }), await api.newCluster({ labels })]
  const page = await open('/clusters?selector=fleet%3Da', { allow: [/^response 409 POST .*\/jobs\/batch$/] })
  await page.getByRole('checkbox', { name: `Select ${cluster.name}` }).check()
  await page.getByText('1 of 2 selected').waitFor()
  await button(page, 'Change labels').click()
  await field(dialog(page), 'Key').fill('stage')
  await field(dialog(page), 'Value').fill('canary')
  await button(dialog(page), 'Review').click()
  const release = await holdRequests(page, '**/api/v1/clusters/labels', 'POST')
  await button(dialog(page, 'Review'), 'Change 1 cluster').click()
  await page.getByRole('progressbar', { name: 'Changed clusters' }).waitFor()
  expect(await axeErrors(page)).toEqual([])
  release()
  await page.getByText('1 cluster of 1 changed.').waitFor()
  expect(await labelsOf(api, cluster.id)).toEqual({ ...labels, stage: 'canary' })

  await button(page, 'Select all 2').click()
  await button(page, 'Change labels').click()
  await field(dialog(page), 'Key').fill('stage')
  await button(dialog(page), 'Remove label').click()
  await button(dialog(page), 'Review').click()
  await dialog(page, 'Review').getByText(`2 clusters: ${otherCluster.name}, ${cluster.name}.`).waitFor()
  await dialog(page, 'Review').getByText('2 never connected').waitFor()
  await button(dialog(page, 'Review'), 'Change 2 clusters').click()
  await page.getByText('1 cluster of 2 changed.').waitFor()
  expect(await labelsOf(api, cluster.id)).toEqual(labels)

  const { id: siteId } = expectStatus(
    await (await api.admin).post('/api/v1/sites', { name: `Bonn ${cluster.name}` }),
    201,
  )
  await page.reload()
  await waitForPage(page)
  await button(page, 'Select all 2').click()
  await button(page, 'Move').click()
  await button(dialog(page), 'Review').click()
  await dialog(page).getByText('Choose a site, or').waitFor()
  await field(dialog(page), 'Site').selectOption(siteId)
  await button(dialog(page), 'Review').click()
  await button(dialog(page, 'Review'), 'Move 2 clusters').click()
  await page.getByText('2 clusters of 2 changed.').waitFor()
  expect((await api.cluster(otherCluster.id)).siteId).toBe(siteId)
  await button(page, 'Name').click()
  await page.waitForURL('**sort=name*')
  await page.getByRole('columnheader', { name: 'Name' }).and(page.locator('[aria-sort=ascending]')).waitFor()
  await expect.poll(() => page.evaluate('document.activeElement.textContent')).toBe('Name')

  await button(page, 'Run a script').click()
  await heading(page, 'Run a script').waitFor()
  expect(await selectorField(page).inputValue()).toBe('fleet=a')
  const editor = page.getByRole('textbox', { name: 'Script' })
  await editor.click()
  await editor.fill('uptime')
  await button(page, 'Review 2 clusters').click()
  await dialog(page).getByText('2 never connected').waitFor()
  expect(await appearanceErrors(page, 'review', [360])).toEqual([])
  await api.newCluster({ labels })
  await button(dialog(page), 'Run on 2 clusters').click()
  await dialog(page).getByRole('alert').waitFor()
  await button(dialog(page), 'Run on 3 clusters').click()
  await page.getByText('Batch of 3 jobs').waitFor()
  errorsOf(page).expectNone()
})

test('the nodes of all clusters are listed with their facts, and found by them', async ({ open, api }) => {
  const relay = await healthyRelay(api, ['facts-a', 'facts-b'])
  const gib = 2 ** 30
  const node = { os: 'linux', osVersion: 'Debian 13', cpus: 4, memoryBytes: 8 * gib, rootDiskBytes: 100 * gib }
  const nodes = [{ id: relay.nodes[0]?.id, ...node, rootDiskFreeBytes: 25 * gib }]
  const facts = { relayVersion: '0.1.0', custom: { rack: 'r1' }, nodes }
  expectStatus(await relay.heartbeat({ factsHash: 'facts-0001', facts }), 200)
  const page = await open('/nodes?search=facts-')
  await row(page, 'facts-b').waitFor()
  for (const text of ['Debian 13', '8 GiB', '25 % of 100 GiB']) {
    await row(page, 'facts-a').filter({ hasText: text }).waitFor()
  }
  await field(page, 'Operating system').fill('linux')
  await page.waitForURL('**os=linux*')
  await expect.poll(() => row(page, 'facts-b').count()).toBe(0)
  await link(page, 'facts-a').click()
  await row(page, 'facts-a').filter({ hasText: 'Debian 13' }).waitFor()
  await page.getByRole('tab', { name: 'Overview' }).click()
  await link(page, 'facts/rack=r1').waitFor()
})

test('a list of nodes that is longer than the window is filtered', async ({ open, api }) => {
  await healthyRelay(
    api,
    Array.from({ length: 60 }, (_, index) => `long-${index}`),
  )
  const page = await open('/nodes?search=long-')
  await page.getByRole('status').getByText('60 nodes').waitFor()
  await field(page, 'Name').fill('long-59')
  await page.getByRole('status').getByText('1 node').waitFor()
  await row(page, 'long-59').waitFor()
})

test.runIf(isLong)(
  'more than 500 clusters get several batches with one result, also after a failure',
  async ({ open, api, shared }) => {
    await seedFleet(shared, api, 505)
    const page = await open('/jobs/new?selector=env%3Dprod', { allow: [/^response 503 POST .*\/jobs\/batch$/] })
    const editor = page.getByRole('textbox', { name: 'Script' })
    await editor.click()
    await editor.fill('uptime')
    let count = 0
    await page.route('**/api/v1/jobs/batch', (route) =>
      ++count === 2
        ? route.fulfill({ status: 503, json: { error: 'unavailable', message: 'Not now.' } })
        : route.fallback(),
    )
    await button(page, /^Review 50\d clusters$/).click()
    await button(dialog(page), /^Run on 50\d clusters$/).click()
    await page.getByText('1 batch was submitted. The other clusters are selected.').waitFor()
    await dialog(page).getByRole('alert').getByText('Not now.').waitFor()
    await page.keyboard.press('Escape')
    await button(page, /^Review \d clusters$/).click()
    await button(dialog(page), /^Run on \d clusters$/).click()
    await heading(page, 'uptime').waitFor()
    await page.getByText('2 batches, submitted by').waitFor()
    await row(page, '500 jobs').waitFor()
  },
)
