import { expect } from 'vitest'
import { test } from './support/test.ts'
import { expectStatus, invalidFields } from './support/answer.ts'
import { batchPath, finishedBatch, jobFor, readBatch, submitBatch } from './support/batch.ts'
import { waitFor } from '../support/wait-for.ts'

test('accepts 500 jobs that are readable immediately', async ({ platform, admin }) => {
  const clusters = [await platform.newCluster(), await platform.newCluster()]
  const jobs = Array.from({ length: 500 }, (_, index) => jobFor(clusters[index % 2].id, `echo ${index}`))
  const { batchId, jobIds, submittedCount } = await submitBatch(platform, { jobs })
  expect([submittedCount, jobIds.length, new Set(jobIds).size]).toEqual([500, 500, 500])
  for (const index of [499, 0, 1, 250]) {
    const job = await platform.job(jobIds[index])
    const { clusterId, payload } = jobs[index] ?? {}
    expect([job.status, job.clusterId, job.payload]).toEqual(['Queued', clusterId, payload])
    expect(job.batchId).toBe(batchId)
  }
  for (let first = 0; first < jobIds.length; first += 25) {
    const ids: string[] = jobIds.slice(first, first + 25)
    const read = await Promise.all(ids.map((id) => platform.job(id)))
    expect(read.map(({ id, status }) => [id, status])).toEqual(ids.map((id) => [id, 'Queued']))
  }
  // Jobs are active from the acceptance on, before their expansion.
  for (const { id } of clusters)
    expectStatus(await admin.delete(`/api/v1/clusters/${id}`), 409, 'cluster_has_active_jobs')
  expectStatus(await admin.post(`${batchPath}/${batchId}/cancel`), 202)
})

test('rejects an empty batch and one of more than 500 jobs', async ({ platform, admin }) => {
  const { id: clusterId } = await platform.newCluster()
  const jobs = Array.from({ length: 501 }, () => jobFor(clusterId))
  expectStatus(await admin.post(batchPath, { jobs }), 400, 'batch_limit_exceeded')
  // The limit is checked before the jobs.
  expectStatus(await admin.post(batchPath, { jobs: jobs.map(() => 7) }), 400, 'batch_limit_exceeded')
  expect(invalidFields(await admin.post(batchPath, { jobs: [] }))).toEqual(['body /jobs'])
  expect(invalidFields(await admin.post(batchPath, {}))).toEqual(['body /jobs'])
  expectStatus(await admin.delete(`/api/v1/clusters/${clusterId}`), 204)
})

test('rejects the whole batch for one foreign or unknown cluster without naming it', async ({ platform, admin }) => {
  const { id: own } = await platform.newCluster()
  const { id: foreign } = await platform.as(await platform.tenant).newCluster()
  for (const stranger of [foreign, 'clus_00000000000000000000000000', 'nothing']) {
    for (const position of [0, 250, 499]) {
      const jobs = Array.from({ length: 500 }, (_, index) => jobFor(index === position ? stranger : own))
      const answer = await admin.post(batchPath, { jobs })
      expectStatus(answer, 403, 'cluster_forbidden')
      expect(answer.text).not.toContain(stranger)
      expect(answer.text).not.toContain(own)
    }
  }
  expectStatus(await admin.delete(`/api/v1/clusters/${own}`), 204)
})

test('rejects the whole batch for one invalid job and names the job', async ({ platform, admin }) => {
  const relay = await platform.newRelay()
  const good = jobFor(relay.clusterId)
  const wrong: [unknown, string][] = [
    [{ ...good, clusterId: 7 }, 'body /jobs/1/clusterId'],
    [{ ...good, payload: {} }, 'body /jobs/1/payload/script'],
    [{ ...good, payload: { script: 'x', timeoutSeconds: 0 } }, 'body /jobs/1/payload/timeoutSeconds'],
    [{ ...good, deliverWithinSeconds: -1 }, 'body /jobs/1/deliverWithinSeconds'],
    [7, 'body /jobs/1'],
  ]
  for (const [job, field] of wrong) {
    expect(invalidFields(await admin.post(batchPath, { jobs: [good, job] }))).toEqual([field])
  }
  const submit = (job: object) => admin.post(batchPath, { jobs: [good, { ...good, ...job }] })
  expectStatus(await submit({ type: 'Reboot' }), 422, 'unknown_job_type')
  expectStatus(await submit({ type: 'PlatformUpdate' }), 422, 'job_type_not_submittable')
  const payload = { script: 'uname', targetNodeIds: ['nothing'] }
  expectStatus(await submit({ payload }), 422, 'node_not_in_cluster')
  for (const name of ['maxConcurrency', 'maxErrors']) {
    expect(invalidFields(await admin.post(batchPath, { jobs: [good], [name]: -1 }))).toEqual([`body /${name}`])
  }
  expectStatus(await admin.delete(`/api/v1/clusters/${relay.clusterId}`), 204)
})

test('lists a batch with its counts and finishes it once cancelled', async ({ platform, admin }) => {
  const { id: clusterId } = await platform.newCluster()
  const jobs = Array.from({ length: 7 }, () => jobFor(clusterId))
  const { batchId, jobIds, createdAt } = await submitBatch(platform, { jobs })
  const begun = await readBatch(platform, batchId)
  expect([begun.status, begun.submittedCount, begun.createdAt]).toEqual(['Running', 7, createdAt])
  expect(begun.counts).toEqual({ queued: 7, running: 0, completed: 0, failed: 0, cancelled: 0 })
  await waitFor('the batch is listed', async () => {
    const { items } = expectStatus(await admin.get(`${batchPath}?pageSize=100`), 200)
    return items.some(({ id }: any) => id === batchId)
  })
  const asked = expectStatus(await admin.post(`${batchPath}/${batchId}/cancel`), 202)
  expect(asked.cancelRequestedAt).toBeDefined()
  const ended = await finishedBatch(platform, batchId)
  expect(ended.counts).toEqual({ queued: 0, running: 0, completed: 0, failed: 0, cancelled: 7 })
  expect(ended.finishedAt).toBeDefined()
  for (const id of jobIds) {
    const { status, statusReason } = await platform.job(id)
    expect([status, statusReason]).toEqual(['Cancelled', 'cancelled_by_user'])
  }
  expectStatus(await admin.post(`${batchPath}/${batchId}/cancel`), 409, 'batch_already_finished')
  expectStatus(await admin.delete(`/api/v1/clusters/${clusterId}`), 204)
})

test('returns 404 for every operation on an unknown batch', async ({ admin: client }) => {
  for (const id of ['nothing', 'batch_00000000000000000000000000', 'job_00000000000000000000000000']) {
    expectStatus(await client.get(`${batchPath}/${id}`), 404, 'batch_not_found')
    expectStatus(await client.post(`${batchPath}/${id}/cancel`), 404, 'batch_not_found')
    expectStatus(await client.post(`${batchPath}/${id}/retry`), 404, 'batch_not_found')
  }
})

test('accepts a batch of the maximum body size', async ({ platform, admin }) => {
  const { id: clusterId } = await platform.newCluster()
  const jobs = Array.from({ length: 15 }, (_, index) => jobFor(clusterId, `# ${index}\n`.padEnd(260_000, 'x')))
  const { batchId, jobIds } = await submitBatch(platform, { jobs })
  expect((await platform.job(jobIds[14])).payload.script).toBe(jobs[14]?.payload.script)
  expectStatus(await admin.post(`${batchPath}/${batchId}/cancel`), 202)
})
