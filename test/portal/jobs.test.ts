import { readFile } from 'node:fs/promises'
import type { Page } from 'playwright-core'
import { expect } from 'vitest'
import { expectStatus } from '../conformance/support/answer.ts'
import { waitForBatch, jobFor, submitBatch, waitForJobs } from '../conformance/support/batch.ts'
import { isLong } from '../support/long.ts'
import { appearanceErrors } from '../support/portal/accessibility.ts'
import { button, dialog, field, heading, link, mainLink } from '../support/portal/locators.ts'
import { errorsOf } from '../support/portal/open.ts'
import { requestsDuring } from '../support/portal/requests.ts'
import { test as inTenant } from '../support/portal/test.ts'

const test = inTenant.extend(
  'relays',
  { scope: 'file' },
  async ({ api }) => [await api.newRelay(), await api.newRelay()] as const,
)

const waitForStatus = (page: Page, name: string) => heading(page, name).waitFor()
const idInPath = (page: Page): string => new URL(page.url()).pathname.split('/').at(-1) ?? ''
const output = (page: Page) => page.getByLabel('Output of the job')
const outputContains = (page: Page, text: string) => expect.poll(() => output(page).innerText()).toContain(text)

async function writeScript(page: Page, script: string): Promise<void> {
  const editor = page.getByRole('textbox', { name: 'Script' })
  await editor.click()
  await editor.fill(script)
}

test('runs a script and shows its output while it runs', async ({ open, api, relays: [relay] }) => {
  const page = await open(`/jobs/new?clusterId=${relay.clusterId}`)
  await writeScript(page, '#!/bin/sh\necho <b>hello</b>')
  await button(page, 'Run job').click()
  await waitForStatus(page, 'Queued')
  const jobId = idInPath(page)
  expect((await api.job(jobId)).payload).toEqual({ script: '#!/bin/sh\necho <b>hello</b>' })

  await api.waitForOffer(relay, jobId)
  const { leaseId } = await relay.claim(jobId)
  expectStatus(await relay.output(jobId, { leaseId, seq: 0, data: '<b>hello</b>\n' }), 200)
  await outputContains(page, '<b>hello</b>')
  await page.getByText('The output updates live.').waitFor()
  expectStatus(await relay.output(jobId, { leaseId, seq: 1, data: '\u001b[31mred\u001b[0m\n10 %\r100 %\n' }), 200)
  await outputContains(page, '100 %')
  const text = await output(page).innerText()
  expect(text).not.toContain('\u001b')
  expect(text).not.toContain('10 %\n')
  expect(await output(page).getByText('red', { exact: true }).getAttribute('class')).toContain('red')
  await button(page, 'Timestamps').click()
  await page.getByRole('searchbox', { name: 'Search the output' }).fill('HELLO')
  await page.getByText('1 of 1 lines').waitFor()
  expect(await output(page).locator('mark').innerText()).toBe('hello')
  const gutter = await output(page).locator('[data-gutter]').first().getAttribute('data-gutter')
  expect(gutter).toMatch(/^\d\d:\d\d:\d\d {2}1 /)
  await page.keyboard.press('Escape')
  expectStatus(await relay.complete(jobId, leaseId, 0), 200)
  await waitForStatus(page, 'Completed')
  await page.getByText('The output is complete.').waitFor()
})

test('several clusters make a batch, whose failed jobs are retried as a new batch', async ({ open, api, relays }) => {
  const page = await open('/jobs/new')
  await writeScript(page, 'uptime')
  for (const { clusterId } of relays) {
    const { name } = await api.cluster(clusterId)
    await page.getByRole('checkbox', { name, exact: true }).check()
  }
  await button(page, 'Review 2 clusters').click()
  await button(dialog(page), 'Run on 2 clusters').click()
  await page.getByText('Batch of 2 jobs').waitFor()
  const batchId = idInPath(page)
  for (const [index, relay] of relays.entries()) {
    for (const jobId of await waitForJobs(relay, [])) {
      const { leaseId } = await relay.claim(jobId)
      const data = index === 0 ? 'all well\n' : '<b>bad</b>\n'
      expectStatus(await relay.output(jobId, { leaseId, seq: 0, data }), 200)
      expectStatus(await relay.complete(jobId, leaseId, index), 200)
    }
  }
  await waitForBatch(api, batchId)
  await waitForStatus(page, 'Finished')
  const counts = page.getByRole('list', { name: 'Jobs by status' })
  await counts.getByText('1 Failed').waitFor()
  await counts.getByText('1 Completed').waitFor()
  const groups = page.getByRole('list', { name: 'Groups of equal results' }).getByRole('listitem')
  await groups.nth(1).getByText('all well').waitFor()
  expect(await groups.first().innerText()).toMatch(/^1\s*Failed\s*exit code 1[^]*<b>bad<\/b>/)
  await page.getByLabel('Script of the job').getByText('uptime').waitFor()
  await button(page, 'Compare two results').click()
  const diff = page.getByRole('region', { name: 'Differences' })
  await expect.poll(() => diff.innerText()).toBe('- all well\n+ <b>bad</b>\n')
  expect(await appearanceErrors(page, 'batch-results')).toEqual([])
  const download = page.waitForEvent('download')
  await button(page, 'Export CSV').click()
  expect(await readFile(await (await download).path(), 'utf8')).toContain(',false,"<b>bad</b>\n"\r\n')
  await groups
    .first()
    .getByRole('button', { name: /^Run on these/ })
    .click()
  await button(page, 'Run job').waitFor()
  await page
    .getByText((await api.cluster(relays[1].clusterId)).name)
    .first()
    .waitFor()
  await page.goBack()
  await button(page, 'Retry failed jobs').click()
  await button(dialog(page), 'Retry failed jobs').click()
  await page.getByText('Batch of 1 job', { exact: true }).waitFor()
  await link(page, batchId).waitFor()
})

test.runIf(isLong)(
  'a script with CRLF line ends is converted, unless the user keeps them',
  async ({ open, api, relays: [relay] }) => {
    const script = '\uFEFFecho a\r\necho b\r\n'
    const jobId = await api.submit(relay.clusterId, { script })
    const page = await open(`/jobs/new?from=${jobId}`)
    for (const expected of ['echo a\necho b\n', script]) {
      await page.getByText('The script has CRLF line ends and a byte order mark').waitFor()
      if (expected === script) await page.getByRole('checkbox', { name: 'Submit the script unchanged' }).check()
      await button(page, 'Run job').click()
      await waitForStatus(page, 'Queued')
      expect((await api.job(idInPath(page))).payload).toEqual({ script: expected })
      await page.goBack()
    }
  },
)

test.runIf(isLong)('selects all clusters of a search, and skips those that are removed', async ({ open, api }) => {
  const admin = await api.admin
  const names = Array.from({ length: 102 }, (_, index) => `many-${index}`)
  const ids: string[] = []
  for (const name of names)
    ids.push(expectStatus(await admin.post('/api/v1/clusters', { name, type: 'Hypervisor' }), 201).id)
  const page = await open('/jobs/new')
  await writeScript(page, 'uptime')
  await field(page, 'Clusters').fill('MANY-')
  await button(page, 'Select all 102').click()
  await button(page, /^Show more/).click()
  await page.getByRole('checkbox', { name: 'many-101', exact: true }).waitFor()
  errorsOf(page).allow(/^response 403 POST .*\/(jobs\/batch|targets\/resolve)$/)
  expectStatus(await admin.delete(`/api/v1/clusters/${ids[0]}`), 204)
  await button(page, 'Review 102 clusters').click()
  await dialog(page).getByText('1 cluster removed').waitFor()
  await button(dialog(page), 'Run on 101 clusters').click()
  await page.getByText('Batch of 101 jobs').waitFor()
})

test.runIf(isLong)('requires a script and a cluster; Enter in the search does not submit', async ({ open, relays }) => {
  const page = await open('/jobs/new')
  const run = async (expected: string) => {
    await button(page, 'Run job').click()
    await page.getByRole('alert').filter({ hasText: expected }).waitFor()
  }
  await run('Enter a script.')
  await writeScript(page, 'uptime')
  await run('Select at least one cluster.')
  await page.getByRole('checkbox').first().check()
  const requests = await requestsDuring(page, async () => {
    await page.getByRole('textbox', { name: 'Clusters' }).press('Enter')
    await page.getByRole('textbox', { name: 'Clusters' }).fill('x')
    await page.waitForResponse(/search=x/)
  })
  expect(requests.filter((request) => request.startsWith('POST'))).toEqual([])
  expect(relays).toHaveLength(2)
})

test.runIf(isLong)('a queued job is cancelled and run again', async ({ open, api, relays: [relay] }) => {
  const jobId = await api.submit(relay.clusterId, { script: 'reboot', timeoutSeconds: 120 })
  const page = await open(`/jobs/${jobId}`)
  await button(page, 'Cancel job').click()
  await button(dialog(page), 'Cancel job').click()
  await waitForStatus(page, 'Cancelled')
  await page.getByText('Cancelled by a user.').waitFor()
  await link(page, 'Run again').click()
  await heading(page, 'Run a script').waitFor()
  await expect.poll(() => page.getByRole('textbox', { name: 'Script' }).innerText()).toBe('reboot')
  expect(await page.getByLabel('Execution timeout (minutes)').inputValue()).toBe('2')
  await button(page, 'Run job').click()
  await waitForStatus(page, 'Queued')
  expect(idInPath(page)).not.toBe(jobId)
})

test.runIf(isLong)('a reopened form lists new clusters', async ({ open, api, relays: [relay] }) => {
  const { name: clusterName } = await api.cluster(relay.clusterId)
  const page = await open('/jobs/new')
  await page.getByRole('checkbox', { name: clusterName, exact: true }).waitFor()
  const { name } = await api.newCluster()
  await mainLink(page, 'Jobs').click()
  await link(page, 'Run a script').click()
  await page.getByRole('checkbox', { name, exact: true }).waitFor()
})

test('titles, filters in the address, and a tab for batches', async ({ open, api, relays: [relay], user }) => {
  const { name } = await api.cluster(relay.clusterId)
  await submitBatch(api, { jobs: [jobFor(relay.clusterId, '#!/bin/sh\nset -e\nls /srv')] })
  const page = await open(`/jobs?clusterId=${relay.clusterId}&status=Queued`)
  expect(await field(page, 'Status').inputValue()).toBe('Queued')
  await expect.poll(() => field(page, 'Cluster').inputValue()).toBe(name)
  await field(page, 'Title').fill('SRV')
  await field(page, 'Submitted by').fill(user.username.slice(0, 2))
  await page.getByRole('option', { name: user.username }).click()
  await expect.poll(() => new URL(page.url()).searchParams.get('createdBy')).toBe(user.username)
  await page.getByRole('link', { name: /^ls \/srv/ }).click()
  await expect.poll(() => page.title()).toMatch(`ls /srv on ${name} (Queued)`)
  await page.goBack()
  await field(page, 'Status').selectOption('Failed')
  await expect.poll(() => new URL(page.url()).searchParams.get('status')).toBe('Failed')
  await page.reload()
  expect(await field(page, 'Status').inputValue()).toBe('Failed')
  await page.getByRole('tab', { name: 'Batches' }).click()
  await page.getByRole('table', { name: 'Batches' }).waitFor()
})

test.runIf(isLong)('the list requests the names of all its clusters at once', async ({ open, api, relays }) => {
  for (const { clusterId } of relays) await api.submit(clusterId)
  const names = await Promise.all(relays.map(async ({ clusterId }) => (await api.cluster(clusterId)).name))
  const page = await open('/dashboard')
  const requests = await requestsDuring(page, async () => {
    await mainLink(page, 'Jobs').click()
    for (const name of names) await link(page, name).first().waitFor()
  })
  expect(requests.filter((request) => request.includes('/clusters/clus_'))).toEqual([])
  expect(requests.filter((request) => request.includes('ids='))).toHaveLength(1)
})
