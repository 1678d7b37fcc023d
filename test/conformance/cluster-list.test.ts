import { expect } from 'vitest'
import { test } from './support/test.ts'
import { expectStatus, invalidFields } from './support/answer.ts'
import type { Platform } from './support/platform.ts'
import { waitFor } from '../support/wait-for.ts'

const path = '/api/v1/clusters'

/** Waits until a page contains a cluster: lists may lag behind writes. */
async function pageWith(platform: Platform, clusterId: string, query: string): Promise<any> {
  const admin = await platform.admin
  return waitFor(`${query} shows ${clusterId}`, async () => {
    const page = expectStatus(await admin.get(`${path}?${query}`), 200)
    const isCounted = page.totalCount >= page.items.length
    return isCounted && page.items.some(({ id }: any) => id === clusterId) && page
  })
}

async function idsOnPages(platform: Platform, pageSize: number): Promise<Set<string>> {
  const admin = await platform.admin
  const met = new Set<string>()
  for (let page = 1; ; page++) {
    const { items } = expectStatus(await admin.get(`${path}?page=${page}&pageSize=${pageSize}`), 200)
    if (items.length === 0) return met
    for (const { id } of items) met.add(id)
  }
}

test('returns 20 clusters per page, newest first, by default', async ({ platform }) => {
  const { id } = await platform.newCluster()
  const { items, page, pageSize } = await pageWith(platform, id, '')
  expect([page, pageSize]).toEqual([1, 20])
  expect(items.length).toBeLessThanOrEqual(20)
  const times = items.map(({ registeredAt }: any) => registeredAt)
  expect(times).toEqual(times.toSorted().toReversed())
})

test('pages together contain every cluster', async ({ platform }) => {
  const made = [await platform.newCluster(), await platform.newCluster(), await platform.newCluster()]
  // A concurrent run that removes clusters shifts the pages.
  await waitFor('one walk through the pages meets all three', async () => {
    const met = await idsOnPages(platform, 10)
    return made.every(({ id }) => met.has(id))
  })
})

test('returns an empty page with the same total after the last page', async ({ admin }) => {
  const { items, totalCount, page } = expectStatus(await admin.get(`${path}?page=100000&pageSize=100`), 200)
  expect([items, page]).toEqual([[], 100_000])
  expect(totalCount).toBeGreaterThanOrEqual(0)
})

test('rejects page and pageSize out of range and names them', async ({ admin: client }) => {
  const wrong = ['0', '-1', '1.5', '1e2', '0x10', 'one', '', '%20', '01', '99999999999999999999', 'NaN', '1%00']
  for (const value of wrong) {
    expect(invalidFields(await client.get(`${path}?page=${value}`)), value).toEqual(['query /page'])
    expect(invalidFields(await client.get(`${path}?pageSize=${value}`)), value).toEqual(['query /pageSize'])
  }
  expect(invalidFields(await client.get(`${path}?pageSize=101`))).toEqual(['query /pageSize'])
  expect(invalidFields(await client.get(`${path}?page=0&pageSize=0`))).toEqual(['query /page', 'query /pageSize'])
  expectStatus(await client.get(`${path}?page=1&page=2`), 400, 'validation_failed')
})

test('filters by status and type and counts the matches', async ({ platform, admin }) => {
  const { id } = await platform.newCluster({ type: 'CloudLocal' })
  await pageWith(platform, id, 'status=Pending&type=CloudLocal&pageSize=100')
  for (const status of ['Healthy', 'Degraded', 'Pending', 'Offline']) {
    for (const type of ['Hypervisor', 'CloudLocal']) {
      const query = `status=${status}&type=${type}&pageSize=100`
      const { items, totalCount } = expectStatus(await admin.get(`${path}?${query}`), 200)
      expect(
        items.every((item: any) => item.status === status && item.type === type),
        query,
      ).toBe(true)
      expect(Math.min(totalCount, 100), query).toBe(items.length)
    }
  }
})

test('rejects unknown filter values and names them', async ({ admin: client }) => {
  for (const value of ['healthy', 'Unknown', '', 'Healthy,Pending']) {
    expect(invalidFields(await client.get(`${path}?status=${value}`))).toEqual(['query /status'])
  }
  expect(invalidFields(await client.get(`${path}?type=Container`))).toEqual(['query /type'])
})
