import assert from 'node:assert/strict'
import { answered } from './support/answer.ts'
import type { Journeys, Platform } from './support/platform.ts'
import { until } from './support/until.ts'

const pathOf = (clusterId: string, query = '') => `/api/v1/clusters/${clusterId}/timeline?${query}`

/** The timeline, once it holds as many entries as it should: it may lag behind by a moment. */
const timelineOf = async (
  platform: Platform,
  clusterId: string,
  isThere: (items: any[]) => boolean,
): Promise<any[]> => {
  const admin = await platform.admin
  return until(`the timeline of ${clusterId}`, async () => {
    const { items } = answered(await admin.get(pathOf(clusterId, 'pageSize=100')), 200)
    return isThere(items) && items
  })
}

const has = (items: any[], wanted: object) =>
  items.some((item) => Object.entries(wanted).every(([name, value]) => item[name] === value))

export const timeline: Journeys = {
  'a cluster’s timeline tells of its jobs, its status and what people did, the newest first': async (platform) => {
    const admin = await platform.admin
    const me = answered(await admin.get('/api/v1/auth/me'), 200)
    const relay = await platform.newRelay()
    const { clusterId } = relay
    answered(await relay.beat(), 200)
    const { jobId, leaseId } = await platform.running(relay)
    answered(await relay.complete(jobId, leaseId, 3), 200)
    answered(await admin.patch(`/api/v1/clusters/${clusterId}`, { name: platform.newName() }), 200)

    const items = await timelineOf(
      platform,
      clusterId,
      (found) =>
        has(found, { kind: 'status' }) &&
        found.filter(({ kind, resource }) => kind === 'job' && resource === jobId).length === 3 &&
        found.filter(({ kind, actor }) => kind === 'audit' && actor.id === me.id).length === 2,
    )
    const times: string[] = items.map(({ at }) => at)
    assert.deepEqual(times, times.toSorted().toReversed())
    assert.equal(new Set(items.map(({ id }) => id)).size, items.length)
    const ended = items.find(({ resource }) => resource === jobId)
    assert.deepEqual([ended.detail, ended.actor], ['exit_nonzero', { kind: 'relay', id: relay.relayId }])
  },

  'pages of a timeline together hold it, and count the same': async (platform) => {
    const admin = await platform.admin
    const { id: clusterId } = await platform.newCluster()
    for (let count = 0; count < 5; count++) {
      answered(await admin.post(`/api/v1/jobs/${await platform.submit(clusterId)}/cancel`), 202)
    }
    const whole = await timelineOf(
      platform,
      clusterId,
      (found) => found.filter(({ kind }) => kind === 'job').length === 10 && has(found, { kind: 'audit' }),
    )
    const met: string[] = []
    for (let page = 1; met.length < whole.length; page++) {
      const part = answered(await admin.get(pathOf(clusterId, `pageSize=4&page=${page}`)), 200)
      assert.deepEqual([part.page, part.pageSize, part.totalCount], [page, 4, whole.length])
      assert.ok(part.items.length > 0)
      met.push(...part.items.map(({ id }: any) => id))
    }
    assert.deepEqual(
      met,
      whole.map(({ id }) => id),
    )
  },

  'the timeline of a cluster that does not exist, or not any more, answers 404': async (platform) => {
    const admin = await platform.admin
    const { id } = await platform.newCluster()
    answered(await admin.delete(`/api/v1/clusters/${id}`), 204)
    for (const clusterId of [id, 'nothing', 'clus_00000000000000000000000000']) {
      answered(await admin.get(pathOf(clusterId)), 404, 'cluster_not_found')
    }
  },
}
