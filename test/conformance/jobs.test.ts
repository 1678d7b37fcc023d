import { expect } from 'vitest'
import { test } from './support/test.ts'
import { expectStatus, invalidFields } from './support/answer.ts'

const path = '/api/v1/jobs'

test('accepts a job as Queued, readable immediately', async ({ platform, admin }) => {
  const { id: clusterId } = await platform.newCluster()
  const payload = { script: 'echo "Ω 💥"\n', timeoutSeconds: 60 }
  const json = { clusterId, type: 'InvokeScript', payload, deliverWithinSeconds: 600 }
  const accepted = expectStatus(await admin.post(path, json), 202)
  const { expiresAt, ...job } = await platform.job(accepted.id)
  expect(job).toEqual({ ...accepted, clusterId, type: 'InvokeScript', status: 'Queued', payload })
  expect(Date.parse(expiresAt) - Date.parse(accepted.createdAt)).toBe(600_000)
  expectStatus(await admin.post(`${path}/${accepted.id}/cancel`), 202)
})

test('names invalid fields', async ({ platform, admin }) => {
  const { id: clusterId } = await platform.newCluster()
  const type = 'InvokeScript'
  const payload = { script: 'uname' }
  const wrong: [object, string[]][] = [
    [{}, ['body /clusterId', 'body /type', 'body /payload']],
    [{ clusterId, type, payload: {} }, ['body /payload/script']],
    [{ clusterId, type, payload: { script: '' } }, ['body /payload/script']],
    [{ clusterId, type, payload: { script: 'a\0b' } }, ['body /payload/script']],
    [{ clusterId, type, payload: { ...payload, timeoutSeconds: 0 } }, ['body /payload/timeoutSeconds']],
    [{ clusterId, type, payload: { ...payload, timeoutSeconds: 172_801 } }, ['body /payload/timeoutSeconds']],
    [{ clusterId, type, payload: { ...payload, timeoutSeconds: '60' } }, ['body /payload/timeoutSeconds']],
    [{ clusterId, type, payload: { ...payload, targetNodeIds: [] } }, ['body /payload/targetNodeIds']],
    [{ clusterId, type, payload: { ...payload, targetNodeIds: [7] } }, ['body /payload/targetNodeIds/0']],
    [{ clusterId, type, payload, deliverWithinSeconds: 0.5 }, ['body /deliverWithinSeconds']],
  ]
  for (const [json, fields] of wrong) expect(invalidFields(await admin.post(path, json))).toEqual(fields)
})

test('rejects unknown job types and those reserved for the platform', async ({ platform, admin }) => {
  const { id: clusterId } = await platform.newCluster()
  const submit = (type: string) => admin.post(path, { clusterId, type, payload: {} })
  for (const type of ['invokescript', 'Reboot', '__proto__']) {
    expectStatus(await submit(type), 422, 'unknown_job_type')
  }
  for (const type of ['ModuleInstall', 'ModuleUninstall', 'PlatformUpdate', 'PlatformRollback']) {
    expectStatus(await submit(type), 422, 'job_type_not_submittable')
  }
})

test('rejects a job for an unknown cluster or a node of another cluster', async ({ platform, admin }) => {
  const relay = await platform.newRelay()
  const stranger = await platform.newRelay()
  const submit = (clusterId: string, targetNodeIds?: (string | undefined)[]) =>
    admin.post(path, { clusterId, type: 'InvokeScript', payload: { script: 'uname', targetNodeIds } })
  for (const clusterId of ['nothing', 'clus_00000000000000000000000000']) {
    expectStatus(await submit(clusterId), 404, 'cluster_not_found')
    expectStatus(await submit(clusterId, ['nothing']), 404, 'cluster_not_found')
  }
  for (const targets of [['nothing'], [stranger.nodes[0]?.id], [relay.nodes[0]?.id, stranger.nodes[0]?.id]]) {
    expectStatus(await submit(relay.clusterId, targets), 422, 'node_not_in_cluster')
  }
  expectStatus(await admin.delete(`/api/v1/clusters/${relay.clusterId}`), 204)
  expectStatus(await submit(relay.clusterId), 404, 'cluster_not_found')
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

test('rejects the removal of a cluster with active jobs', async ({ platform, admin }) => {
  const { id: clusterId } = await platform.newCluster()
  const jobIds = [await platform.submit(clusterId), await platform.submit(clusterId)]
  for (const jobId of jobIds) {
    expectStatus(await admin.delete(`/api/v1/clusters/${clusterId}`), 409, 'cluster_has_active_jobs')
    expectStatus(await admin.post(`${path}/${jobId}/cancel`), 202)
  }
  expectStatus(await admin.delete(`/api/v1/clusters/${clusterId}`), 204)
})

test('returns 404 for every operation on an unknown job', async ({ admin: client }) => {
  for (const id of ['nothing', 'job_00000000000000000000000000', 'clus_00000000000000000000000000', '%F0%9F%92%A5']) {
    expectStatus(await client.get(`${path}/${id}`), 404, 'job_not_found')
    expectStatus(await client.get(`${path}/${id}/output`), 404, 'job_not_found')
    expectStatus(await client.post(`${path}/${id}/cancel`), 404, 'job_not_found')
  }
})
