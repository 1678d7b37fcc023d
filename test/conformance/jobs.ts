import assert from 'node:assert/strict'
import { answered, refusedFields } from './support/answer.ts'
import type { Journeys } from './support/platform.ts'

const path = '/api/v1/jobs'

export const jobs: Journeys = {
  'an accepted job is Queued and can be read at once': async (platform) => {
    const { id: clusterId } = await platform.newCluster()
    const payload = { script: 'echo "Ω 💥"\n', timeoutSeconds: 60 }
    const admin = await platform.admin
    const json = { clusterId, type: 'InvokeScript', payload, deliverWithinSeconds: 600 }
    const accepted = answered(await admin.post(path, json), 202)
    const { expiresAt, ...job } = await platform.job(accepted.id)
    assert.deepEqual(job, { ...accepted, clusterId, type: 'InvokeScript', status: 'Queued', payload })
    assert.equal(Date.parse(expiresAt) - Date.parse(accepted.createdAt), 600_000)
    answered(await admin.post(`${path}/${accepted.id}/cancel`), 202)
  },

  'fields that are wrong are named': async (platform) => {
    const { id: clusterId } = await platform.newCluster()
    const admin = await platform.admin
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
    for (const [json, fields] of wrong) assert.deepEqual(refusedFields(await admin.post(path, json)), fields)
  },

  'a type that nobody knows, or that nobody may submit, is refused whatever its payload': async (platform) => {
    const { id: clusterId } = await platform.newCluster()
    const admin = await platform.admin
    const submit = (type: string) => admin.post(path, { clusterId, type, payload: {} })
    for (const type of ['invokescript', 'Reboot', '__proto__']) {
      answered(await submit(type), 422, 'unknown_job_type')
    }
    for (const type of ['ModuleInstall', 'ModuleUninstall', 'PlatformUpdate', 'PlatformRollback']) {
      answered(await submit(type), 422, 'job_type_not_submittable')
    }
  },

  'a job for a cluster that does not exist, or a node that is not in it, is refused': async (platform) => {
    const admin = await platform.admin
    const relay = await platform.newRelay()
    const stranger = await platform.newRelay()
    const submit = (clusterId: string, targetNodeIds?: (string | undefined)[]) =>
      admin.post(path, { clusterId, type: 'InvokeScript', payload: { script: 'uname', targetNodeIds } })
    for (const clusterId of ['nothing', 'clus_00000000000000000000000000']) {
      answered(await submit(clusterId), 404, 'cluster_not_found')
      answered(await submit(clusterId, ['nothing']), 404, 'cluster_not_found')
    }
    for (const targets of [['nothing'], [stranger.nodes[0]?.id], [relay.nodes[0]?.id, stranger.nodes[0]?.id]]) {
      answered(await submit(relay.clusterId, targets), 422, 'node_not_in_cluster')
    }
    answered(await admin.delete(`/api/v1/clusters/${relay.clusterId}`), 204)
    answered(await submit(relay.clusterId), 404, 'cluster_not_found')
  },

  'a script of 256 KiB is too large, one slightly below is not': async (platform) => {
    const { id: clusterId } = await platform.newCluster()
    const admin = await platform.admin
    const submit = (script: string) => admin.post(path, { clusterId, type: 'InvokeScript', payload: { script } })
    assert.ok([400, 413].includes((await submit('x'.repeat(262_145))).status))
    assert.ok([400, 413].includes((await submit('Ω'.repeat(200_000))).status))
    const { id } = answered(await submit('x'.repeat(262_000)), 202)
    answered(await admin.post(`${path}/${id}/cancel`), 202)
  },

  'a queued job is cancelled at once, and only once': async (platform) => {
    const admin = await platform.admin
    const { id: clusterId } = await platform.newCluster()
    const jobId = await platform.submit(clusterId)
    const { status, statusReason } = answered(await admin.post(`${path}/${jobId}/cancel`), 202)
    assert.deepEqual([status, statusReason], ['Cancelled', 'cancelled_by_user'])
    answered(await admin.post(`${path}/${jobId}/cancel`), 409, 'job_already_finished')
    const { completedAt, startedAt } = await platform.job(jobId)
    assert.ok(completedAt !== undefined && startedAt === undefined)
  },

  'a cluster with active jobs cannot be removed; once they have ended it can': async (platform) => {
    const admin = await platform.admin
    const { id: clusterId } = await platform.newCluster()
    const jobIds = [await platform.submit(clusterId), await platform.submit(clusterId)]
    for (const jobId of jobIds) {
      answered(await admin.delete(`/api/v1/clusters/${clusterId}`), 409, 'cluster_has_active_jobs')
      answered(await admin.post(`${path}/${jobId}/cancel`), 202)
    }
    answered(await admin.delete(`/api/v1/clusters/${clusterId}`), 204)
  },

  'an identifier that names no job answers 404 everywhere, whatever it looks like': async ({ admin }) => {
    const client = await admin
    for (const id of ['nothing', 'job_00000000000000000000000000', 'clus_00000000000000000000000000', '%F0%9F%92%A5']) {
      answered(await client.get(`${path}/${id}`), 404, 'job_not_found')
      answered(await client.get(`${path}/${id}/output`), 404, 'job_not_found')
      answered(await client.post(`${path}/${id}/cancel`), 404, 'job_not_found')
    }
  },
}
