import assert from 'node:assert/strict'
import { answered, refusedFields } from './support/answer.ts'
import { batchPath, finishedBatch, jobFor, readBatch, submitBatch } from './support/batch.ts'
import type { Journeys } from './support/platform.ts'
import { until } from './support/until.ts'

export const batches: Journeys = {
  'five hundred jobs are accepted at once, and each of them can be read at once': async (platform) => {
    const admin = await platform.admin
    const clusters = [await platform.newCluster(), await platform.newCluster()]
    const jobs = Array.from({ length: 500 }, (_, index) => jobFor(clusters[index % 2].id, `echo ${index}`))
    const { batchId, jobIds, submittedCount } = await submitBatch(platform, { jobs })
    assert.deepEqual([submittedCount, jobIds.length, new Set(jobIds).size], [500, 500, 500])
    for (const index of [499, 0, 1, 250]) {
      const job = await platform.job(jobIds[index])
      const { clusterId, payload } = jobs[index] ?? {}
      assert.deepEqual([job.status, job.clusterId, job.payload], ['Queued', clusterId, payload])
      assert.equal(job.batchId, batchId)
    }
    for (let first = 0; first < jobIds.length; first += 25) {
      const ids: string[] = jobIds.slice(first, first + 25)
      const read = await Promise.all(ids.map((id) => platform.job(id)))
      assert.deepEqual(
        read.map(({ id, status }) => [id, status]),
        ids.map((id) => [id, 'Queued']),
      )
    }
    // Active from the first moment, before anything was done with them.
    for (const { id } of clusters)
      answered(await admin.delete(`/api/v1/clusters/${id}`), 409, 'cluster_has_active_jobs')
    answered(await admin.post(`${batchPath}/${batchId}/cancel`), 202)
  },

  'a batch of nothing, and one of more than five hundred, is refused, and nothing is created': async (platform) => {
    const admin = await platform.admin
    const { id: clusterId } = await platform.newCluster()
    const jobs = Array.from({ length: 501 }, () => jobFor(clusterId))
    answered(await admin.post(batchPath, { jobs }), 400, 'batch_limit_exceeded')
    // Whatever else is wrong with them.
    answered(await admin.post(batchPath, { jobs: jobs.map(() => 7) }), 400, 'batch_limit_exceeded')
    assert.deepEqual(refusedFields(await admin.post(batchPath, { jobs: [] })), ['body /jobs'])
    assert.deepEqual(refusedFields(await admin.post(batchPath, {})), ['body /jobs'])
    answered(await admin.delete(`/api/v1/clusters/${clusterId}`), 204)
  },

  'one foreign or unknown cluster at any position refuses the whole batch, and the answer names none': async (
    platform,
  ) => {
    const admin = await platform.admin
    const { id: own } = await platform.newCluster()
    const { id: foreign } = await platform.as(await platform.tenant).newCluster()
    for (const stranger of [foreign, 'clus_00000000000000000000000000', 'nothing']) {
      for (const position of [0, 250, 499]) {
        const jobs = Array.from({ length: 500 }, (_, index) => jobFor(index === position ? stranger : own))
        const answer = await admin.post(batchPath, { jobs })
        answered(answer, 403, 'cluster_forbidden')
        assert.ok(!answer.text.includes(stranger) && !answer.text.includes(own))
      }
    }
    answered(await admin.delete(`/api/v1/clusters/${own}`), 204)
  },

  'a job that is wrong refuses the whole batch, and is named': async (platform) => {
    const admin = await platform.admin
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
      assert.deepEqual(refusedFields(await admin.post(batchPath, { jobs: [good, job] })), [field])
    }
    const submit = (job: object) => admin.post(batchPath, { jobs: [good, { ...good, ...job }] })
    answered(await submit({ type: 'Reboot' }), 422, 'unknown_job_type')
    answered(await submit({ type: 'PlatformUpdate' }), 422, 'job_type_not_submittable')
    const payload = { script: 'uname', targetNodeIds: ['nothing'] }
    answered(await submit({ payload }), 422, 'node_not_in_cluster')
    for (const name of ['maxConcurrency', 'maxErrors']) {
      assert.deepEqual(refusedFields(await admin.post(batchPath, { jobs: [good], [name]: -1 })), [`body /${name}`])
    }
    answered(await admin.delete(`/api/v1/clusters/${relay.clusterId}`), 204)
  },

  'a batch is listed, and counts its jobs; cancelled, all of them have ended and it is over': async (platform) => {
    const admin = await platform.admin
    const { id: clusterId } = await platform.newCluster()
    const jobs = Array.from({ length: 7 }, () => jobFor(clusterId))
    const { batchId, jobIds, createdAt } = await submitBatch(platform, { jobs })
    const begun = await readBatch(platform, batchId)
    assert.deepEqual([begun.status, begun.submittedCount, begun.createdAt], ['Running', 7, createdAt])
    assert.deepEqual(begun.counts, { queued: 7, running: 0, completed: 0, failed: 0, cancelled: 0 })
    await until('the batch is listed', async () => {
      const { items } = answered(await admin.get(`${batchPath}?pageSize=100`), 200)
      return items.some(({ id }: any) => id === batchId)
    })
    const asked = answered(await admin.post(`${batchPath}/${batchId}/cancel`), 202)
    assert.ok(asked.cancelRequestedAt !== undefined)
    const ended = await finishedBatch(platform, batchId)
    assert.deepEqual(ended.counts, { queued: 0, running: 0, completed: 0, failed: 0, cancelled: 7 })
    assert.ok(ended.finishedAt !== undefined)
    for (const id of jobIds) {
      const { status, statusReason } = await platform.job(id)
      assert.deepEqual([status, statusReason], ['Cancelled', 'cancelled_by_user'])
    }
    answered(await admin.post(`${batchPath}/${batchId}/cancel`), 409, 'batch_already_finished')
    answered(await admin.delete(`/api/v1/clusters/${clusterId}`), 204)
  },

  'an identifier that names no batch answers 404 everywhere': async ({ admin }) => {
    const client = await admin
    for (const id of ['nothing', 'batch_00000000000000000000000000', 'job_00000000000000000000000000']) {
      answered(await client.get(`${batchPath}/${id}`), 404, 'batch_not_found')
      answered(await client.post(`${batchPath}/${id}/cancel`), 404, 'batch_not_found')
      answered(await client.post(`${batchPath}/${id}/retry`), 404, 'batch_not_found')
    }
  },

  'a batch as large as a body may be is accepted': async (platform) => {
    const admin = await platform.admin
    const { id: clusterId } = await platform.newCluster()
    const jobs = Array.from({ length: 15 }, (_, index) => jobFor(clusterId, `# ${index}\n`.padEnd(260_000, 'x')))
    const { batchId, jobIds } = await submitBatch(platform, { jobs })
    assert.equal((await platform.job(jobIds[14])).payload.script, jobs[14]?.payload.script)
    answered(await admin.post(`${batchPath}/${batchId}/cancel`), 202)
  },
}
