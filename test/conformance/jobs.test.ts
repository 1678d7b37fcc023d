import { expect } from 'vitest'
import { waitFor } from '../support/wait-for.ts'
import { expectStatus } from './support/answer.ts'
import type { Platform } from './support/platform.ts'
import { test } from './support/test.ts'

const path = '/api/v1/jobs'

test('accepts a job as Queued, readable immediately', async ({ platform, admin }) => {
  const { id: clusterId } = await platform.newCluster()
  const payload = { script: 'echo "Ω 💥"\n', timeoutSeconds: 60 }
  const purpose = { name: 'Print', reason: 'Ticket 4711' }
  const title = purpose.name
  const json = { clusterId, type: 'InvokeScript', payload, deliverWithinSeconds: 600, ...purpose }
  const acceptedJob = expectStatus(await admin.post(path, json), 202)
  const { expiresAt, createdBy, ...job } = await platform.job(acceptedJob.id)
  expect(job).toEqual({ ...acceptedJob, clusterId, type: 'InvokeScript', status: 'Queued', payload, title, ...purpose })
  const me = expectStatus(await admin.get('/api/v1/auth/me'), 200)
  expect(createdBy).toEqual({ id: me.id, username: me.username, via: 'session' })
  expect(Date.parse(expiresAt) - Date.parse(acceptedJob.createdAt)).toBe(600_000)
  expectStatus(await admin.post(`${path}/${acceptedJob.id}/cancel`), 202)
})

test('rejects a script above 256 KiB', async ({ platform, admin }) => {
  const { id: clusterId } = await platform.newCluster()
  const submit = (script: string) => admin.post(path, { clusterId, type: 'InvokeScript', payload: { script } })
  expect([400, 413]).toContain((await submit('x'.repeat(262_145))).status)
  expect([400, 413]).toContain((await submit('Ω'.repeat(200_000))).status)
  const { id } = expectStatus(await submit('x'.repeat(262_000)), 202)
  expectStatus(await admin.post(`${path}/${id}/cancel`), 202)
})

test('cancels a queued job once', async ({ platform, admin }) => {
  const { id: clusterId } = await platform.newCluster()
  const jobId = await platform.submit(clusterId)
  const { status, statusReason } = expectStatus(await admin.post(`${path}/${jobId}/cancel`), 202)
  expect([status, statusReason]).toEqual(['Cancelled', 'cancelled_by_user'])
  expectStatus(await admin.post(`${path}/${jobId}/cancel`), 409, 'job_already_finished')
  const { completedAt, startedAt } = await platform.job(jobId)
  expect(completedAt).toBeDefined()
  expect(startedAt).toBeUndefined()
})

/** Waits until a query returns exactly these jobs, newest first: lists may lag behind writes. */
async function waitForList(platform: Platform, query: string, jobIds: readonly string[]): Promise<any[]> {
  const client = await platform.admin
  return waitFor(`${query} shows ${jobIds.length} jobs`, async () => {
    const { items, totalCount } = expectStatus(await client.get(`${path}?${query}`), 200)
    const isMatch = items.length === jobIds.length && items.every(({ id }: any, index: number) => id === jobIds[index])
    return isMatch && totalCount === jobIds.length && items
  })
}

test('lists the jobs of a cluster, newest first, without payload and result', async ({ platform, admin }) => {
  const { id: clusterId } = await platform.newCluster()
  const [first, second, third] = [
    await platform.submit(clusterId),
    await platform.submit(clusterId),
    await platform.submit(clusterId),
  ]
  const items = await waitForList(platform, `clusterId=${clusterId}`, [third, second, first])
  const { payload: _, expiresAt: __, ...summary } = await platform.job(first)
  expect(items.at(-1)).toEqual(summary)
  expectStatus(await admin.post(`${path}/${second}/cancel`), 202)
  await waitForList(platform, `clusterId=${clusterId}&status=Queued`, [third, first])
  await waitForList(platform, `clusterId=${clusterId}&createdBy=${items[0].createdBy.username}`, [third, second, first])
  await waitForList(platform, `clusterId=${clusterId}&since=${items[1].createdAt}`, [third, second])
  await waitForList(platform, `clusterId=${clusterId}&status=Cancelled`, [second])
})
