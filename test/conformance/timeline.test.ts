import { expect } from 'vitest'
import { test } from './support/test.ts'
import { expectStatus } from './support/answer.ts'
import type { Platform } from './support/platform.ts'
import { waitFor } from '../support/wait-for.ts'

const pathOf = (clusterId: string, query = '') => `/api/v1/clusters/${clusterId}/timeline?${query}`

/** Waits until the timeline has this many entries. */
const timelineOf = async (
  platform: Platform,
  clusterId: string,
  isThere: (items: any[]) => boolean,
): Promise<any[]> => {
  const admin = await platform.admin
  return waitFor(`the timeline of ${clusterId}`, async () => {
    const { items } = expectStatus(await admin.get(pathOf(clusterId, 'pageSize=100')), 200)
    return isThere(items) && items
  })
}

const has = (items: any[], wanted: object) =>
  items.some((item) => Object.entries(wanted).every(([name, value]) => item[name] === value))

test('lists job, status and audit entries of a cluster, newest first', async ({ platform, admin }) => {
  const me = expectStatus(await admin.get('/api/v1/auth/me'), 200)
  const relay = await platform.newRelay()
  const { clusterId } = relay
  expectStatus(await relay.heartbeat(), 200)
  const { jobId, leaseId } = await platform.running(relay)
  expectStatus(await relay.complete(jobId, leaseId, 3), 200)
  expectStatus(await admin.patch(`/api/v1/clusters/${clusterId}`, { name: platform.newName() }), 200)

  const items = await timelineOf(
    platform,
    clusterId,
    (found) =>
      has(found, { kind: 'status' }) &&
      found.filter(({ kind, resource }) => kind === 'job' && resource === jobId).length === 3 &&
      found.filter(({ kind, actor }) => kind === 'audit' && actor.id === me.id).length === 2,
  )
  const times: string[] = items.map(({ at }) => at)
  expect(times).toEqual(times.toSorted().toReversed())
  expect(new Set(items.map(({ id }) => id)).size).toBe(items.length)
  const ended = items.find(({ resource }) => resource === jobId)
  expect([ended.detail, ended.actor]).toEqual(['exit_nonzero', { kind: 'relay', id: relay.relayId }])
})

test('pages together contain the timeline with the same total', async ({ platform, admin }) => {
  const { id: clusterId } = await platform.newCluster()
  for (let count = 0; count < 5; count++) {
    expectStatus(await admin.post(`/api/v1/jobs/${await platform.submit(clusterId)}/cancel`), 202)
  }
  const whole = await timelineOf(
    platform,
    clusterId,
    (found) => found.filter(({ kind }) => kind === 'job').length === 10 && has(found, { kind: 'audit' }),
  )
  const met: string[] = []
  for (let page = 1; met.length < whole.length; page++) {
    const part = expectStatus(await admin.get(pathOf(clusterId, `pageSize=4&page=${page}`)), 200)
    expect([part.page, part.pageSize, part.totalCount]).toEqual([page, 4, whole.length])
    expect(part.items.length).toBeGreaterThan(0)
    met.push(...part.items.map(({ id }: any) => id))
  }
  expect(met).toEqual(whole.map(({ id }) => id))
})

test('returns 404 for an unknown or removed cluster', async ({ platform, admin }) => {
  const { id } = await platform.newCluster()
  expectStatus(await admin.delete(`/api/v1/clusters/${id}`), 204)
  for (const clusterId of [id, 'nothing', 'clus_00000000000000000000000000']) {
    expectStatus(await admin.get(pathOf(clusterId)), 404, 'cluster_not_found')
  }
})
