import assert from 'node:assert/strict'
import { answered, refusedFields } from './support/answer.ts'
import { jobFor, submitBatch } from './support/batch.ts'
import type { Journeys, Platform } from './support/platform.ts'
import { until } from './support/until.ts'

const path = '/api/v1/jobs'

/** The page of a query, once it shows these jobs and no others, newest first: lists may lag behind by a moment. */
async function shows(platform: Platform, query: string, jobIds: readonly string[]): Promise<any[]> {
  const client = await platform.admin
  return until(`${query} shows ${jobIds.length} jobs`, async () => {
    const { items, totalCount } = answered(await client.get(`${path}?${query}`), 200)
    const isRight = items.length === jobIds.length && items.every(({ id }: any, index: number) => id === jobIds[index])
    return isRight && totalCount === jobIds.length && items
  })
}

export const jobList: Journeys = {
  'jobs of a cluster are listed, newest first, without payload and result': async (platform) => {
    const { id: clusterId } = await platform.newCluster()
    const [first, second, third] = [
      await platform.submit(clusterId),
      await platform.submit(clusterId),
      await platform.submit(clusterId),
    ]
    const items = await shows(platform, `clusterId=${clusterId}`, [third, second, first])
    const { payload: _, expiresAt: __, ...summary } = await platform.job(first)
    assert.deepEqual(items.at(-1), summary)
    answered(await (await platform.admin).post(`${path}/${second}/cancel`), 202)
    await shows(platform, `clusterId=${clusterId}&status=Queued`, [third, first])
    await shows(platform, `clusterId=${clusterId}&status=Cancelled`, [second])
  },

  'status is found in whatever state a job is': async (platform) => {
    const relay = await platform.newRelay()
    const of = (status: string) => `clusterId=${relay.clusterId}&status=${status}`
    const completed = await platform.running(relay)
    answered(await relay.complete(completed.jobId, completed.leaseId, 0), 200)
    const failed = await platform.running(relay)
    answered(await relay.complete(failed.jobId, failed.leaseId, 3), 200)
    const { jobId: running, leaseId } = await platform.running(relay)
    const queued = await platform.submit(relay.clusterId)
    const expected = { Completed: completed.jobId, Failed: failed.jobId, Running: running, Queued: queued }
    for (const [status, id] of Object.entries(expected)) {
      await shows(platform, of(status), [id])
      const everywhere = answered(await (await platform.admin).get(`${path}?status=${status}&pageSize=100`), 200)
      assert.ok(everywhere.items.length > 0 && everywhere.totalCount >= everywhere.items.length)
      assert.ok(everywhere.items.every((item: any) => item.status === status))
    }
    await shows(platform, of('Cancelled'), [])
    await shows(platform, `${of('Failed')}&type=InvokeScript`, [failed.jobId])
    await shows(platform, `${of('Failed')}&type=ModuleInstall`, [])
    answered(await relay.complete(running, leaseId, 0), 200)
  },

  'pages together hold every job of a batch once, and count the same': async (platform) => {
    const admin = await platform.admin
    const { id: clusterId } = await platform.newCluster()
    const jobs = Array.from({ length: 45 }, () => jobFor(clusterId))
    const { batchId, jobIds } = await submitBatch(platform, { jobs })
    const query = `batchId=${batchId}`
    await until('all are listed', async () => answered(await admin.get(`${path}?${query}`), 200).totalCount === 45)
    const met: string[] = []
    for (let page = 1; page <= 4; page++) {
      const part = answered(await admin.get(`${path}?${query}&page=${page}&pageSize=15`), 200)
      assert.deepEqual([part.totalCount, part.page, part.pageSize], [45, page, 15])
      met.push(...part.items.map(({ id }: any) => id))
    }
    assert.deepEqual(met.toSorted(), jobIds.toSorted())
    const narrow = answered(await admin.get(`${path}?${query}&clusterId=${clusterId}&status=Queued`), 200)
    assert.deepEqual([narrow.items.length, narrow.totalCount], [20, 45])
    assert.ok(narrow.items.every((item: any) => item.batchId === batchId))
  },

  'the newest jobs of the organisation come first, and no page repeats a row': async (platform) => {
    const admin = await platform.admin
    const { id: clusterId } = await platform.newCluster()
    const jobId = await platform.submit(clusterId)
    const read = async (page: number) => answered(await admin.get(`${path}?page=${page}&pageSize=20`), 200)
    const first = await until('the job is listed', async () => {
      const page = await read(1)
      return page.items.some(({ id }: any) => id === jobId) && page
    })
    const times = first.items.map(({ createdAt }: any) => createdAt)
    assert.deepEqual(times, times.toSorted().toReversed())
    assert.ok(first.totalCount >= first.items.length)
    const far = await read(100_000)
    assert.deepEqual(far.items, [])
  },

  'a filter for what does not exist finds nothing, or is refused and named': async (platform) => {
    const client = await platform.admin
    for (const query of ['clusterId=nothing', 'batchId=nothing', 'batchId=batch_00000000000000000000000000']) {
      await shows(platform, query, [])
    }
    for (const value of ['queued', 'Done', '', 'Queued,Running']) {
      assert.deepEqual(refusedFields(await client.get(`${path}?status=${value}`)), ['query /status'])
    }
    assert.deepEqual(refusedFields(await client.get(`${path}?type=Reboot`)), ['query /type'])
    assert.deepEqual(refusedFields(await client.get(`${path}?page=0&pageSize=101`)), ['query /page', 'query /pageSize'])
  },
}
