import { expect } from 'vitest'
import { test } from './support/test.ts'
import { expectStatus, invalidFields } from './support/answer.ts'
import { jobFor, submitBatch } from './support/batch.ts'
import type { Platform } from './support/platform.ts'
import { waitFor } from '../support/wait-for.ts'

const path = '/api/v1/jobs'

/** Waits until a query returns exactly these jobs, newest first: lists may lag behind writes. */
async function shows(platform: Platform, query: string, jobIds: readonly string[]): Promise<any[]> {
  const client = await platform.admin
  return waitFor(`${query} shows ${jobIds.length} jobs`, async () => {
    const { items, totalCount } = expectStatus(await client.get(`${path}?${query}`), 200)
    const isRight = items.length === jobIds.length && items.every(({ id }: any, index: number) => id === jobIds[index])
    return isRight && totalCount === jobIds.length && items
  })
}

test('lists the jobs of a cluster, newest first, without payload and result', async ({ platform, admin }) => {
  const { id: clusterId } = await platform.newCluster()
  const [first, second, third] = [
    await platform.submit(clusterId),
    await platform.submit(clusterId),
    await platform.submit(clusterId),
  ]
  const items = await shows(platform, `clusterId=${clusterId}`, [third, second, first])
  const { payload: _, expiresAt: __, ...summary } = await platform.job(first)
  expect(items.at(-1)).toEqual(summary)
  expectStatus(await admin.post(`${path}/${second}/cancel`), 202)
  await shows(platform, `clusterId=${clusterId}&status=Queued`, [third, first])
  await shows(platform, `clusterId=${clusterId}&status=Cancelled`, [second])
})

test('filters jobs by every status', async ({ platform, admin }) => {
  const relay = await platform.newRelay()
  const of = (status: string) => `clusterId=${relay.clusterId}&status=${status}`
  const completed = await platform.running(relay)
  expectStatus(await relay.complete(completed.jobId, completed.leaseId, 0), 200)
  const failed = await platform.running(relay)
  expectStatus(await relay.complete(failed.jobId, failed.leaseId, 3), 200)
  const { jobId: running, leaseId } = await platform.running(relay)
  const queued = await platform.submit(relay.clusterId)
  const expected = { Completed: completed.jobId, Failed: failed.jobId, Running: running, Queued: queued }
  for (const [status, id] of Object.entries(expected)) {
    await shows(platform, of(status), [id])
    const everywhere = expectStatus(await admin.get(`${path}?status=${status}&pageSize=100`), 200)
    expect(everywhere.items.length).toBeGreaterThan(0)
    expect(everywhere.totalCount).toBeGreaterThanOrEqual(everywhere.items.length)
    expect(everywhere.items.every((item: any) => item.status === status)).toBe(true)
  }
  await shows(platform, of('Cancelled'), [])
  await shows(platform, `${of('Failed')}&type=InvokeScript`, [failed.jobId])
  await shows(platform, `${of('Failed')}&type=ModuleInstall`, [])
  expectStatus(await relay.complete(running, leaseId, 0), 200)
})

test('pages together contain every job of a batch once with the same total', async ({ platform, admin }) => {
  const { id: clusterId } = await platform.newCluster()
  const jobs = Array.from({ length: 45 }, () => jobFor(clusterId))
  const { batchId, jobIds } = await submitBatch(platform, { jobs })
  const query = `batchId=${batchId}`
  await waitFor('all are listed', async () => expectStatus(await admin.get(`${path}?${query}`), 200).totalCount === 45)
  const met: string[] = []
  for (let page = 1; page <= 4; page++) {
    const part = expectStatus(await admin.get(`${path}?${query}&page=${page}&pageSize=15`), 200)
    expect([part.totalCount, part.page, part.pageSize]).toEqual([45, page, 15])
    met.push(...part.items.map(({ id }: any) => id))
  }
  expect(met.toSorted()).toEqual(jobIds.toSorted())
  const narrow = expectStatus(await admin.get(`${path}?${query}&clusterId=${clusterId}&status=Queued`), 200)
  expect([narrow.items.length, narrow.totalCount]).toEqual([20, 45])
  expect(narrow.items.every((item: any) => item.batchId === batchId)).toBe(true)
})

test('lists the newest jobs first and returns an empty page after the last', async ({ platform, admin }) => {
  const { id: clusterId } = await platform.newCluster()
  const jobId = await platform.submit(clusterId)
  const read = async (page: number) => expectStatus(await admin.get(`${path}?page=${page}&pageSize=20`), 200)
  const first = await waitFor('the job is listed', async () => {
    const page = await read(1)
    return page.items.some(({ id }: any) => id === jobId) && page
  })
  const times = first.items.map(({ createdAt }: any) => createdAt)
  expect(times).toEqual(times.toSorted().toReversed())
  expect(first.totalCount).toBeGreaterThanOrEqual(first.items.length)
  const far = await read(100_000)
  expect(far.items).toEqual([])
})

test('returns nothing for unknown identifiers and rejects unknown filter values', async ({
  platform,
  admin: client,
}) => {
  for (const query of ['clusterId=nothing', 'batchId=nothing', 'batchId=batch_00000000000000000000000000']) {
    await shows(platform, query, [])
  }
  for (const value of ['queued', 'Done', '', 'Queued,Running']) {
    expect(invalidFields(await client.get(`${path}?status=${value}`))).toEqual(['query /status'])
  }
  expect(invalidFields(await client.get(`${path}?type=Reboot`))).toEqual(['query /type'])
  expect(invalidFields(await client.get(`${path}?page=0&pageSize=101`))).toEqual(['query /page', 'query /pageSize'])
})
