import { expect } from 'vitest'
import { expectStatus } from '../conformance/support/answer.ts'
import { hostileCluster, storedPayloads as texts } from '../support/portal/hostile.ts'
import { heading } from '../support/portal/locators.ts'
import { test } from '../support/portal/test.ts'

/** Stored payloads are displayed as plain text; a payload that executes is a page error. See also xss.long.test.ts. */

test('lists, cluster pages, job pages and notifications show payloads as text', async ({ visit, api }) => {
  const createdClusters = await Promise.all(texts.map((text) => hostileCluster(api, text)))
  const page = await visit('/clusters')
  for (const text of texts) await page.getByRole('link', { name: text, exact: true }).first().waitFor()
  for (const [index, { relay, jobId }] of createdClusters.entries()) {
    const text = texts[index] ?? ''
    await page.goto(`/clusters/${relay.clusterId}?tab=nodes`)
    await heading(page, text).waitFor()
    await page.getByRole('cell', { name: text, exact: true }).waitFor()
    await page.goto(`/jobs/${jobId}`)
    for (const label of ['Script of the job', 'Output of the job']) {
      await expect.poll(() => page.getByLabel(label).textContent()).toContain(text)
    }
  }
  await page.goto('/notifications')
  for (const { relay } of createdClusters.slice(0, 1)) expectStatus(await relay.goodbye(), 204)
  await page.getByText(`Cluster ${texts[0]} is offline`).waitFor()
})
