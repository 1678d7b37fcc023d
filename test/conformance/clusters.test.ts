import { expect } from 'vitest'
import { waitFor } from '../support/wait-for.ts'
import { expectStatus, invalidFields } from './support/answer.ts'
import type { Platform } from './support/platform.ts'
import { test } from './support/test.ts'

const path = '/api/v1/clusters'

test('registers a cluster as Pending, readable immediately', async ({ platform }) => {
  const name = platform.newName()
  const registration = await platform.newCluster({ name, type: 'CloudLocal' })
  const { registeredAt, ...cluster } = await platform.cluster(registration.id)
  expect(registeredAt).toBe(registration.registeredAt)
  expect(cluster).toEqual({
    id: registration.id,
    name,
    type: 'CloudLocal',
    status: 'Pending',
    nodeCount: 0,
    labels: { 'platform/type': 'CloudLocal' },
    lastSeenAt: null,
    nodes: [],
    relay: null,
  })
})

test('returns a relay command that keeps the token out of the arguments', async ({ platform }) => {
  const { relayCommand, enrollmentToken } = await platform.newCluster()
  expect(relayCommand).toMatch(/^curl \S.*\/relay\/relay\.mjs /)
  const [environment = '', programArguments = ''] = relayCommand.split(/ node /)
  expect(environment).toContain(`PLAT_ENROLLMENT_TOKEN=${enrollmentToken}`)
  expect(programArguments).not.toContain(enrollmentToken)
})

test('rejects invalid fields and registers nothing', async ({ platform, admin }) => {
  const name = platform.newName()
  const invalidBodies: [object, string[]][] = [
    [{}, ['body /name', 'body /type']],
    [{ name: 'ab', type: 'Hypervisor' }, ['body /name']],
    [{ name: 'x'.repeat(65), type: 'Hypervisor' }, ['body /name']],
    [{ name: 'line\nbreak', type: 'Hypervisor' }, ['body /name']],
    [{ name: ['text'], type: 'Hypervisor' }, ['body /name']],
    [{ name, type: 'hypervisor' }, ['body /type']],
    [{ name, type: 'Hypervisor', siteId: 7 }, ['body /siteId']],
  ]
  for (const [json, fields] of invalidBodies) expect(invalidFields(await admin.post(path, json))).toEqual(fields)
  for (const siteId of ['nothing', 'site_00000000000000000000000000']) {
    expectStatus(await admin.post(path, { name, type: 'Hypervisor', siteId }), 422, 'site_not_found')
  }
  await platform.newCluster({ name })
})

test('registers one cluster when 16 requests race for a name in any case', async ({ platform, admin }) => {
  const name = platform.newName()
  const names = Array.from({ length: 16 }, (_, index) => (index % 2 === 0 ? name : name.toUpperCase()))
  const responses = await Promise.all(names.map((each) => admin.post(path, { name: each, type: 'Hypervisor' })))
  const winners = responses.filter(({ status }) => status === 201)
  expect(winners.length).toBe(1)
  for (const response of responses) if (!winners.includes(response)) expectStatus(response, 409, 'cluster_name_taken')
  expectStatus(await admin.delete(`${path}/${winners[0]?.body.id}`), 204)
})

test('renames a cluster, frees the old name and reserves the new one', async ({ platform, admin }) => {
  const [first, second] = [await platform.newCluster(), await platform.newCluster()]
  const name = platform.newName()
  const renamedCluster = expectStatus(await admin.patch(`${path}/${first.id}`, { name }), 200)
  expect([renamedCluster.id, renamedCluster.name, renamedCluster.type]).toEqual([first.id, name, first.type])
  expectStatus(await admin.patch(`${path}/${second.id}`, { name: name.toUpperCase() }), 409, 'cluster_name_taken')
  expectStatus(await admin.patch(`${path}/${second.id}`, { name: first.name }), 200)
  expect((await platform.cluster(second.id)).name).toBe(first.name)
})

test('moves a cluster into and out of a site and ignores an empty change', async ({ platform, admin }) => {
  const { id: siteId } = await platform.newSite()
  const { id } = await platform.newCluster()
  const clusterBefore = expectStatus(await admin.patch(`${path}/${id}`, {}), 200)
  expect(expectStatus(await admin.patch(`${path}/${id}`, { siteId }), 200).siteId).toBe(siteId)
  expectStatus(await admin.patch(`${path}/${id}`, { siteId: 'nothing' }), 422, 'site_not_found')
  expect(expectStatus(await admin.patch(`${path}/${id}`, { siteId: null }), 200)).toEqual(clusterBefore)
  expect(invalidFields(await admin.patch(`${path}/${id}`, { name: 'ab' }))).toEqual(['body /name'])
})

test('labels clusters, finds them by selector and counts their labels', async ({ platform, admin }) => {
  const app = platform
    .newName()
    .toLowerCase()
    .replaceAll(/[^a-z0-9]/g, '')
  const { id } = await platform.newCluster({ labels: { app, env: 'prod' } })
  await platform.newCluster({ labels: { app } })
  const change = { labels: { env: null, tier: 'web' } }
  expect(expectStatus(await admin.patch(`${path}/${id}`, change), 200).labels).toMatchObject({ app, tier: 'web' })
  const query = `selector=${encodeURIComponent(`app=${app},tier`)}`
  const { items, totalCount } = expectStatus(await admin.get(`${path}?${query}`), 200)
  expect([items[0].id, items[0].labels.env, totalCount]).toEqual([id, undefined, 1])
  const [summary] = expectStatus(await admin.get(`${path}/labels?key=app`), 200).items
  expect(summary.values).toContainEqual({ value: app, clusterCount: 2 })
  const badSelector = await admin.get(`${path}?selector=${encodeURIComponent('env=prod,')}`)
  expect(expectStatus(badSelector, 400, 'validation_failed').details).toMatchObject([
    { path: '/selector', position: 10 },
  ])
  for (const labels of [{ 'platform/type': 'x' }, { 'facts/a': 'x' }, { Env: 'x' }, { env: '-x' }, { env: 7 }])
    expectStatus(await admin.patch(`${path}/${id}`, { labels }), 400, 'validation_failed')
})

test('removing a cluster revokes its enrollment token and frees its name', async ({ platform, admin }) => {
  const { id, name, enrollmentToken } = await platform.newCluster()
  expectStatus(await admin.delete(`${path}/${id}`), 204)
  expectStatus(await admin.get(`${path}/${id}`), 404, 'cluster_not_found')
  expectStatus(await admin.delete(`${path}/${id}`), 404, 'cluster_not_found')
  await expect(platform.enroll(enrollmentToken)).rejects.toThrow(/enrollment_token_invalid/)
  await platform.newCluster({ name })
})

test('hides the jobs of a removed cluster at once', async ({ platform, admin }) => {
  const relay = await platform.newRelay()
  const { jobId, leaseId } = await platform.startJob(relay)
  expectStatus(await relay.complete(jobId, leaseId, 0), 200)
  expectStatus(await admin.delete(`${path}/${relay.clusterId}`), 204)
  for (const suffix of ['', '/output']) {
    expectStatus(await admin.get(`/api/v1/jobs/${jobId}${suffix}`), 404, 'job_not_found')
  }
  const { items } = expectStatus(await admin.get(`/api/v1/jobs?clusterId=${relay.clusterId}`), 200)
  expect(items).toEqual([])
})

const timelinePath = (clusterId: string, query = '') => `/api/v1/clusters/${clusterId}/timeline?${query}`

const timelineOf = async (
  platform: Platform,
  clusterId: string,
  isComplete: (items: any[]) => boolean,
): Promise<any[]> => {
  const admin = await platform.admin
  return waitFor(`the timeline of ${clusterId}`, async () => {
    const { items } = expectStatus(await admin.get(timelinePath(clusterId, 'pageSize=100')), 200)
    return isComplete(items) && items
  })
}

const has = (items: any[], wanted: object) =>
  items.some((item) => Object.entries(wanted).every(([name, value]) => item[name] === value))

test('lists job, status and audit entries of a cluster, newest first', async ({ platform, admin }) => {
  const me = expectStatus(await admin.get('/api/v1/auth/me'), 200)
  const relay = await platform.newRelay()
  const { clusterId } = relay
  expectStatus(await relay.heartbeat(), 200)
  const { jobId, leaseId } = await platform.startJob(relay)
  expectStatus(await relay.complete(jobId, leaseId, 3), 200)
  expectStatus(await admin.patch(`/api/v1/clusters/${clusterId}`, { name: platform.newName() }), 200)

  const items = await timelineOf(
    platform,
    clusterId,
    (found) =>
      has(found, { kind: 'status' }) &&
      has(found, { kind: 'job', resource: jobId, title: 'Job failed' }) &&
      found.filter(({ kind, actor }) => kind === 'audit' && actor.id === me.id).length === 2,
  )
  const times: string[] = items.map(({ at }) => at)
  expect(times).toEqual(times.toSorted().toReversed())
  expect(new Set(items.map(({ id }) => id)).size).toBe(items.length)
  const [jobEntry, ...otherEntries] = items.filter(({ resource }) => resource === jobId)
  expect([jobEntry.detail, jobEntry.actor]).toEqual(['exit_nonzero', { kind: 'user', id: me.id }])
  expect(Date.parse(jobEntry.endedAt)).toBeGreaterThanOrEqual(Date.parse(jobEntry.at))
  expect(otherEntries).toEqual([])
})

test('returns 404 for an unknown or removed cluster', async ({ platform, admin }) => {
  const { id } = await platform.newCluster()
  expectStatus(await admin.delete(`/api/v1/clusters/${id}`), 204)
  for (const clusterId of [id, 'nothing', 'clus_00000000000000000000000000']) {
    expectStatus(await admin.get(timelinePath(clusterId)), 404, 'cluster_not_found')
  }
})

const sitesPath = '/api/v1/sites'

test('creates, lists and removes a site', async ({ platform, admin }) => {
  const site = await platform.newSite()
  const isListed = async () =>
    expectStatus(await admin.get(sitesPath), 200).items.some(
      ({ id, name }: any) => id === site.id && name === site.name,
    )
  await waitFor('the site is listed', isListed)
  expectStatus(await admin.delete(`${sitesPath}/${site.id}`), 204)
  await waitFor('the site is no longer listed', async () => !(await isListed()))
  expectStatus(await admin.delete(`${sitesPath}/${site.id}`), 404, 'site_not_found')
})

test('keeps site names unique and frees them on removal', async ({ platform, admin }) => {
  const { id, name } = await platform.newSite()
  expectStatus(await admin.post(sitesPath, { name }), 409, 'site_name_taken')
  expectStatus(await admin.delete(`${sitesPath}/${id}`), 204)
  const newSite = expectStatus(await admin.post(sitesPath, { name }), 201)
  expectStatus(await admin.delete(`${sitesPath}/${newSite.id}`), 204)
})

test('rejects the removal of a site with clusters', async ({ platform, admin }) => {
  const { id: siteId } = await platform.newSite()
  const cluster = await platform.newCluster({ siteId })
  expectStatus(await admin.delete(`${sitesPath}/${siteId}`), 409, 'site_in_use')
  expectStatus(await admin.delete(`/api/v1/clusters/${cluster.id}`), 204)
  expectStatus(await admin.delete(`${sitesPath}/${siteId}`), 204)
})

test('rejects invalid names', async ({ admin }) => {
  for (const name of [undefined, '', ' ', 'x'.repeat(65), 'line\nbreak', 7, null]) {
    expect(invalidFields(await admin.post(sitesPath, { name }))).toEqual(['body /name'])
  }
})
