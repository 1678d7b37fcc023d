import type { Page } from 'playwright-core'
import { expect } from 'vitest'
import { answered } from '../conformance/support/answer.ts'
import { finishedBatch, jobFor, submitBatch, told } from '../conformance/support/batch.ts'
import { isLong } from '../support/long.ts'
import { axe } from '../support/portal/axe.ts'
import { reachingOut } from '../support/portal/layout.ts'
import { test as base } from '../support/portal/shared.ts'

/** What an operator does with jobs: writes, follows, cancels and repeats them. The relay is played by the test. */

const test = base.extend(
  'relays',
  { scope: 'file' },
  async ({ api }) => [await api.newRelay(), await api.newRelay()] as const,
)

const heading = (page: Page, name: string) => page.getByRole('heading', { level: 1, name })
const status = (page: Page, word: string) => heading(page, word)
const idIn = (page: Page): string => new URL(page.url()).pathname.split('/').at(-1) ?? ''
const outputOf = (page: Page) => page.getByLabel('Output of the job')
const shown = (page: Page, text: string) => expect.poll(() => outputOf(page).innerText()).toContain(text)

async function write(page: Page, script: string): Promise<void> {
  const editor = page.getByRole('textbox', { name: 'Script' })
  await editor.click()
  await editor.fill(script)
}

test('a script is written, runs where it is sent, and its output is seen while it comes', async ({
  open,
  api,
  relays,
}) => {
  const [relay] = relays
  const page = await open(`/jobs/new?clusterId=${relay.clusterId}`)
  await write(page, '#!/bin/sh\necho <b>hello</b>')
  await axe(page)
  await page.getByRole('button', { name: 'Run job' }).click()
  await status(page, 'Queued').waitFor()
  const jobId = idIn(page)
  const job = answered(await (await api.admin).get(`/api/v1/jobs/${jobId}`), 200)
  expect(job['payload']).toEqual({ script: '#!/bin/sh\necho <b>hello</b>' })

  await api.told(relay, jobId)
  const { leaseId } = await relay.claim(jobId)
  answered(await relay.output(jobId, { leaseId, seq: 0, data: '<b>hello</b>\n' }), 200)
  await shown(page, '<b>hello</b>')
  await page.getByText('The output goes on').waitFor()
  answered(await relay.output(jobId, { leaseId, seq: 1, data: '\u001b[31mred\u001b[0m 10 %\r100 %\n' }), 200)
  await shown(page, '100 %')
  const text = await outputOf(page).innerText()
  expect(text).not.toContain('\u001b')
  expect(text).not.toContain('10 %\n')
  answered(await relay.complete(jobId, leaseId, 0), 200)
  await status(page, 'Completed').waitFor()
  await page.getByText('The output is complete.').waitFor()
  await axe(page)
})

test.runIf(isLong)(
  'a job without a script or without a target is not sent, and the page says what is missing',
  async ({ open, relays }) => {
    expect(relays).toHaveLength(2)
    const page = await open('/jobs/new')
    await page.getByRole('button', { name: 'Run job' }).click()
    await page.getByRole('alert').filter({ hasText: 'Write a script first.' }).waitFor()
    await write(page, 'uptime')
    await page.getByRole('button', { name: 'Run job' }).click()
    await page.getByRole('alert').filter({ hasText: 'Choose at least one cluster' }).waitFor()
    expect(page.url()).toMatch(/\/jobs\/new$/)
  },
)

test.runIf(isLong)('who ends the search for a cluster by Enter has not run the job', async ({ open, api, relays }) => {
  const [{ clusterId }] = relays
  const page = await open(`/jobs/new?clusterId=${clusterId}`)
  await write(page, 'uptime')
  const before = answered(await (await api.admin).get('/api/v1/jobs'), 200).totalCount
  const { name } = await api.cluster(clusterId)
  await page.getByRole('textbox', { name: 'Clusters' }).fill(String(name))
  await page.keyboard.press('Enter')
  await page.getByRole('checkbox', { name: String(name), exact: true }).waitFor()
  await page.getByRole('textbox', { name: 'Clusters' }).press('Enter')
  expect(page.url()).toContain('/jobs/new')
  expect(answered(await (await api.admin).get('/api/v1/jobs'), 200).totalCount).toBe(before)
})

test.runIf(isLong)(
  'a queued job is cancelled after a question, and can be run again with its script',
  async ({ open, api, relays }) => {
    const jobId = await api.submit(relays[0].clusterId, { script: 'reboot', timeoutSeconds: 120 })
    const page = await open(`/jobs/${jobId}`)
    await page.getByRole('button', { name: 'Cancel job' }).click()
    await page.getByRole('dialog').getByRole('button', { name: 'Cancel job' }).click()
    await status(page, 'Cancelled').waitFor()
    await page.getByText('It was cancelled.').waitFor()
    await page.getByRole('link', { name: 'Run again' }).click()
    await heading(page, 'Run a script').waitFor()
    await expect.poll(() => page.getByRole('textbox', { name: 'Script' }).innerText()).toBe('reboot')
    expect(await page.getByLabel('May run for (minutes)').inputValue()).toBe('2')
    await page.getByRole('button', { name: 'Run job' }).click()
    await status(page, 'Queued').waitFor()
    expect(idIn(page)).not.toBe(jobId)
  },
)

test('several clusters make a batch, whose failed jobs are retried as a new one', async ({ open, api, relays }) => {
  const page = await open('/jobs/new')
  await write(page, 'uptime')
  for (const { clusterId } of relays) {
    const { name } = await api.cluster(clusterId)
    await page.getByRole('checkbox', { name: String(name), exact: true }).check()
  }
  await page.getByRole('button', { name: 'Run on 2 clusters' }).click()
  await heading(page, 'Batch of 2 jobs').waitFor()
  const batchId = idIn(page)
  await axe(page)
  for (const [index, relay] of relays.entries()) {
    for (const jobId of await told(relay, [])) {
      const { leaseId } = await relay.claim(jobId)
      answered(await relay.complete(jobId, leaseId, index), 200)
    }
  }
  await finishedBatch(api, batchId)
  await heading(page, 'Finished').waitFor()
  const counts = page.getByRole('list', { name: 'Jobs by status' })
  await counts.getByText('1 Failed').waitFor()
  await counts.getByText('1 Completed').waitFor()
  await page.getByRole('button', { name: 'Retry failed jobs' }).click()
  await page.getByRole('dialog').getByRole('button', { name: 'Retry failed jobs' }).click()
  await heading(page, 'Batch of 1 job').waitFor()
  await page.getByRole('link', { name: batchId }).waitFor()
})

test.runIf(isLong)(
  'who comes back to choose clusters may choose one that is new since',
  async ({ open, api, relays }) => {
    const { name: known } = await api.cluster(relays[0].clusterId)
    const page = await open('/jobs/new')
    await page.getByRole('checkbox', { name: String(known), exact: true }).waitFor()
    const { name } = await api.newCluster()
    await page.getByRole('navigation', { name: 'Main' }).getByRole('link', { name: 'Jobs' }).click()
    await page.getByRole('link', { name: 'Run a script' }).click()
    await page.getByRole('checkbox', { name, exact: true }).waitFor()
  },
)

test.runIf(isLong)(
  'the list follows its filter from the address, and shows batches on their own',
  async ({ open, api, relays }) => {
    const [{ clusterId }] = relays
    await submitBatch(api, { jobs: [jobFor(clusterId, 'true')] })
    const page = await open(`/jobs?clusterId=${clusterId}&status=Queued`, { width: 360 })
    expect(await page.getByLabel('Status').inputValue()).toBe('Queued')
    await page.getByRole('button', { name: /^Only on / }).waitFor()
    expect(await reachingOut(page)).toEqual([])
    await page.getByLabel('Status').selectOption('Failed')
    await expect.poll(() => new URL(page.url()).searchParams.get('status')).toBe('Failed')
    await page.reload()
    expect(await page.getByLabel('Status').inputValue()).toBe('Failed')
    await page.getByRole('tab', { name: 'Batches' }).click()
    await page.getByRole('table', { name: 'Batches' }).waitFor()
    await axe(page)
  },
)

test.runIf(isLong)('who may only look is offered nothing to run or cancel', async ({ open, api, relays }) => {
  const jobId = await api.submit(relays[0].clusterId, { script: 'true' })
  const viewer = await api.newPerson('Viewer')
  const page = await open(`/jobs/${jobId}`, { as: viewer })
  await status(page, 'Queued').waitFor()
  expect(await page.getByRole('button', { name: 'Cancel job' }).count()).toBe(0)
  await page.goto('/jobs')
  await page.getByRole('table', { name: 'Jobs' }).waitFor()
  expect(await page.getByRole('link', { name: 'Run a script' }).count()).toBe(0)
})
