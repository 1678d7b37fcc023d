import assert from 'node:assert/strict'
import { answered, refusedFields } from './support/answer.ts'
import type { Journeys, Platform } from './support/platform.ts'
import { until } from './support/until.ts'

const path = '/api/v1/clusters'

/** A page, once it shows a cluster: lists may lag behind a write by a moment. */
async function pageWith(platform: Platform, clusterId: string, query: string): Promise<any> {
  const admin = await platform.admin
  return until(`${query} shows ${clusterId}`, async () => {
    const page = answered(await admin.get(`${path}?${query}`), 200)
    const isCounted = page.totalCount >= page.items.length
    return isCounted && page.items.some(({ id }: any) => id === clusterId) && page
  })
}

/** The identifiers on all pages of a size. */
async function idsOnPages(platform: Platform, pageSize: number): Promise<Set<string>> {
  const admin = await platform.admin
  const met = new Set<string>()
  for (let page = 1; ; page++) {
    const { items } = answered(await admin.get(`${path}?page=${page}&pageSize=${pageSize}`), 200)
    if (items.length === 0) return met
    for (const { id } of items) met.add(id)
  }
}

export const clusterPages: Journeys = {
  'a page is 20 rows, newest first, unless it is told otherwise': async (platform) => {
    const { id } = await platform.newCluster()
    const { items, page, pageSize } = await pageWith(platform, id, '')
    assert.deepEqual([page, pageSize], [1, 20])
    assert.ok(items.length <= 20)
    const times = items.map(({ registeredAt }: any) => registeredAt)
    assert.deepEqual(times, times.toSorted().toReversed())
  },

  'pages together hold every cluster': async (platform) => {
    const made = [await platform.newCluster(), await platform.newCluster(), await platform.newCluster()]
    // Another run that removes clusters meanwhile moves rows from page to page.
    await until('one walk through the pages meets all three', async () => {
      const met = await idsOnPages(platform, 10)
      return made.every(({ id }) => met.has(id))
    })
  },

  'a page behind the last is empty and counts the same': async ({ admin }) => {
    const { items, totalCount, page } = answered(await (await admin).get(`${path}?page=100000&pageSize=100`), 200)
    assert.deepEqual([items, page], [[], 100_000])
    assert.ok(totalCount >= 0)
  },

  'page and pageSize out of range are refused and named': async ({ admin }) => {
    const client = await admin
    const wrong = ['0', '-1', '1.5', '1e2', '0x10', 'one', '', '%20', '01', '99999999999999999999', 'NaN', '1%00']
    for (const value of wrong) {
      assert.deepEqual(refusedFields(await client.get(`${path}?page=${value}`)), ['query /page'], value)
      assert.deepEqual(refusedFields(await client.get(`${path}?pageSize=${value}`)), ['query /pageSize'], value)
    }
    assert.deepEqual(refusedFields(await client.get(`${path}?pageSize=101`)), ['query /pageSize'])
    assert.deepEqual(refusedFields(await client.get(`${path}?page=0&pageSize=0`)), ['query /page', 'query /pageSize'])
    answered(await client.get(`${path}?page=1&page=2`), 400, 'validation_failed')
  },

  'filters show and count what they name, and nothing else': async (platform) => {
    const admin = await platform.admin
    const { id } = await platform.newCluster({ type: 'CloudLocal' })
    await pageWith(platform, id, 'status=Pending&type=CloudLocal&pageSize=100')
    for (const status of ['Healthy', 'Degraded', 'Pending', 'Offline']) {
      for (const type of ['Hypervisor', 'CloudLocal']) {
        const query = `status=${status}&type=${type}&pageSize=100`
        const { items, totalCount } = answered(await admin.get(`${path}?${query}`), 200)
        assert.ok(
          items.every((item: any) => item.status === status && item.type === type),
          query,
        )
        assert.equal(Math.min(totalCount, 100), items.length, query)
      }
    }
  },

  'a filter for what does not exist is refused and named': async ({ admin }) => {
    const client = await admin
    for (const value of ['healthy', 'Unknown', '', 'Healthy,Pending']) {
      assert.deepEqual(refusedFields(await client.get(`${path}?status=${value}`)), ['query /status'])
    }
    assert.deepEqual(refusedFields(await client.get(`${path}?type=Container`)), ['query /type'])
  },
}
