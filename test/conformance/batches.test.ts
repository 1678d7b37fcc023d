import { createHash, randomUUID } from 'node:crypto'
import { expect } from 'vitest'
import { waitFor } from '../support/wait-for.ts'
import { expectStatus, invalidFields } from './support/answer.ts'
import { batchPath, waitForBatch, jobFor, readBatch, submitBatch, waitForJobs } from './support/batch.ts'
import type { Platform } from './support/platform.ts'
import type { Relay } from './support/relay.ts'
import { test } from './support/test.ts'

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
  // An accepted job counts as active even before it is stored.
  for (const { id } of clusters)
    expectStatus(await admin.delete(`/api/v1/clusters/${id}`), 409, 'cluster_has_active_jobs')
  expectStatus(await admin.post(`${batchPath}/${batchId}/cancel`), 202)
})

test('labels, moves, counts and sorts the clusters of a target, and submits a job to each', async ({
  platform,
  admin,
}) => {
  const app = platform
    .newName()
    .toLowerCase()
    .replaceAll(/[^a-z0-9]/g, '')
  const ids = [(await platform.newCluster()).id, (await platform.newCluster()).id]
  const change = { target: { clusterIds: ids }, set: { app }, remove: ['legacy'] }
  const labelResult = expectStatus(await admin.post('/api/v1/clusters/labels', change), 200)
  expect(labelResult).toEqual({ resolvedCount: 2, changedCount: 2 })
  const target = { selector: `app=${app}` }
  const details = { includeIds: true, includeStatus: true }
  const resolvedTarget = expectStatus(await admin.post('/api/v1/targets/resolve', { target, ...details }), 200)
  expect([resolvedTarget.resolvedCount, new Set(resolvedTarget.clusterIds)]).toEqual([2, new Set(ids)])
  expect(resolvedTarget.byStatus).toEqual({ Healthy: 0, Degraded: 0, Pending: 2, Offline: 0 })
  const { id: siteId } = expectStatus(await admin.post('/api/v1/sites', { name: platform.newName() }), 201)
  const moveResult = expectStatus(await admin.post('/api/v1/clusters/site', { target, siteId }), 200)
  expect(moveResult).toEqual({ resolvedCount: 2, changedCount: 2 })
  const query = new URLSearchParams({ selector: `platform/site=${siteId}`, sort: 'registeredAt', include: 'lastJob' })
  const { items } = expectStatus(await admin.get(`/api/v1/clusters?${query.toString()}`), 200)
  expect(items.map(({ id }: { id: string }) => id)).toEqual(ids)
  expectStatus(await admin.post('/api/v1/clusters/site', { target, siteId: null }), 200)
  expectStatus(await admin.delete(`/api/v1/sites/${siteId}`), 204)
  const submission = { target, type: 'InvokeScript', payload: { script: 'true' } }
  const changedResponse = await admin.post(batchPath, { ...submission, expectedCount: 3 })
  expect(expectStatus(changedResponse, 409, 'target_changed').resolvedCount).toBe(2)
  const batch = expectStatus(await admin.post(batchPath, { ...submission, expectedCount: 2 }), 202)
  expect([batch.resolvedCount, batch.jobIds.length]).toEqual([2, 2])
  const emptyTargetResponse = await admin.post(batchPath, { ...submission, target: { selector: `app=${app},!app` } })
  expect(invalidFields(emptyTargetResponse)).toEqual(['body /target'])
  expect(invalidFields(await admin.post(batchPath, { ...submission, jobs: [jobFor(ids[0])] }))).toContain(
    'body /target',
  )
  expectStatus(await admin.post(`${batchPath}/${batch.batchId}/cancel`), 202)
})

test('rejects the whole batch for one foreign or unknown cluster without naming it', async ({ platform, admin }) => {
  const { id: ownId } = await platform.newCluster()
  const { id: otherId } = await platform.as(await platform.tenant).newCluster()
  for (const invalidId of [otherId, 'clus_00000000000000000000000000', 'nothing']) {
    const jobs = Array.from({ length: 500 }, (_, index) => jobFor(index === 250 ? invalidId : ownId))
    const response = await admin.post(batchPath, { jobs })
    expectStatus(response, 403, 'cluster_forbidden')
    expect(response.text).not.toContain(invalidId)
    expect(response.text).not.toContain(ownId)
  }
  expectStatus(await admin.delete(`/api/v1/clusters/${ownId}`), 204)
})

test('rejects the whole batch for one invalid job and names the job', async ({ platform, admin }) => {
  const relay = await platform.newRelay()
  const validJob = jobFor(relay.clusterId)
  const invalidJobs: [unknown, string][] = [
    [{ ...validJob, clusterId: 7 }, 'body /jobs/1/clusterId'],
    [{ ...validJob, payload: {} }, 'body /jobs/1/payload/script'],
    [{ ...validJob, payload: { script: 'x', timeoutSeconds: 0 } }, 'body /jobs/1/payload/timeoutSeconds'],
    [{ ...validJob, deliverWithinSeconds: -1 }, 'body /jobs/1/deliverWithinSeconds'],
    [7, 'body /jobs/1'],
  ]
  for (const [job, field] of invalidJobs) {
    expect(invalidFields(await admin.post(batchPath, { jobs: [validJob, job] }))).toEqual([field])
  }
  const submit = (job: object) => admin.post(batchPath, { jobs: [validJob, { ...validJob, ...job }] })
  expectStatus(await submit({ type: 'Reboot' }), 422, 'unknown_job_type')
  expectStatus(await submit({ type: 'PlatformUpdate' }), 422, 'job_type_not_submittable')
  const payload = { script: 'uname', targetNodeIds: ['nothing'] }
  expectStatus(await submit({ payload }), 422, 'node_not_in_cluster')
  for (const name of ['maxConcurrency', 'maxErrors']) {
    expect(invalidFields(await admin.post(batchPath, { jobs: [validJob], [name]: -1 }))).toEqual([`body /${name}`])
  }
  expectStatus(await admin.delete(`/api/v1/clusters/${relay.clusterId}`), 204)
})

test('lists a batch with its counts and finishes it once cancelled', async ({ platform, admin }) => {
  const { id: clusterId } = await platform.newCluster()
  const jobs = Array.from({ length: 7 }, () => jobFor(clusterId))
  const { batchId, jobIds, createdAt } = await submitBatch(platform, { jobs })
  const acceptedBatch = await readBatch(platform, batchId)
  expect([acceptedBatch.status, acceptedBatch.submittedCount, acceptedBatch.createdAt]).toEqual([
    'Running',
    7,
    createdAt,
  ])
  expect(acceptedBatch.counts).toEqual({ queued: 7, running: 0, completed: 0, failed: 0, cancelled: 0 })
  await waitFor('the batch is listed', async () => {
    const { items } = expectStatus(await admin.get(`${batchPath}?pageSize=100`), 200)
    return items.some(({ id }: any) => id === batchId)
  })
  const cancellation = expectStatus(await admin.post(`${batchPath}/${batchId}/cancel`), 202)
  expect(cancellation.cancelRequestedAt).toBeDefined()
  const endedBatch = await waitForBatch(platform, batchId)
  expect(endedBatch.counts).toEqual({ queued: 0, running: 0, completed: 0, failed: 0, cancelled: 7 })
  expect(endedBatch.finishedAt).toBeDefined()
  for (const id of jobIds) {
    const { status, statusReason } = await platform.job(id)
    expect([status, statusReason]).toEqual(['Cancelled', 'cancelled_by_user'])
  }
  expectStatus(await admin.post(`${batchPath}/${batchId}/cancel`), 409, 'batch_already_finished')
  expectStatus(await admin.delete(`/api/v1/clusters/${clusterId}`), 204)
})

/** Claims and completes the offered jobs one by one. Returns the maximum number of jobs offered at the same time. */
async function completeInOrder(relay: Relay, exitCodes: readonly number[]): Promise<number> {
  let maxConcurrent = 0
  for (const exitCode of exitCodes) {
    const [next = '', ...others] = await waitForJobs(relay, [])
    maxConcurrent = Math.max(maxConcurrent, 1 + others.length)
    const { leaseId } = await relay.claim(next)
    expectStatus(await relay.complete(next, leaseId, exitCode), 200)
  }
  return maxConcurrent
}

const jobsFor = (relay: Relay, count: number) =>
  Array.from({ length: count }, (_, index) => jobFor(relay.clusterId, `echo ${index}`))

const reasonsOf = async (platform: Platform, jobIds: string[]) => {
  const jobs = await Promise.all(jobIds.map((id) => platform.job(id)))
  return jobs.map(({ status, statusReason }) => [status, statusReason].filter(Boolean).join(' '))
}

test('groups the jobs of a batch by equal results, pages their clusters and exports them', async ({
  platform,
  admin,
}) => {
  const relay = await platform.newRelay()
  const { batchId, jobIds } = await submitBatch(platform, { jobs: jobsFor(relay, 4) })
  await completeInOrder(relay, [0, 3, 0])
  const get = async (path: string) => expectStatus(await admin.get(`${batchPath}/${batchId}/${path}`), 200)
  const { groups, pending } = await get('groups')
  const emptySha256 = createHash('sha256').digest('hex')
  const commonFields = { outputSha256: emptySha256, sample: '', clusterIds: [relay.clusterId] }
  expect(groups).toMatchObject([
    { ...commonFields, status: 'Failed', statusReason: 'exit_nonzero', exitCode: 3, count: 1, sampleJobId: jobIds[1] },
    { ...commonFields, status: 'Completed', exitCode: 0, count: 2 },
  ])
  expect(pending).toBe(1)
  await completeInOrder(relay, [3])
  expect((await get('groups')).groups[1].key).toBe(groups[1].key)
  const firstPage = await get(`groups/${groups[1].key}/clusters?pageSize=1`)
  const secondPage = await get(`groups/1/clusters?pageSize=1&cursor=${firstPage.nextCursor}`)
  expect([...firstPage.items, ...secondPage.items].map(({ jobId }: any) => jobId)).toEqual([jobIds[2], jobIds[0]])
  expectStatus(await admin.get(`${batchPath}/${batchId}/groups/2/clusters`), 404, 'group_not_found')
  const results = await get('results')
  expect(results.items.map(({ exitCode }: any) => exitCode)).toEqual([3, 0, 3, 0])
  expect(results).toMatchObject({
    totalCount: 4,
    items: { 0: { jobId: jobIds[3], output: '', outputTruncated: false } },
  })
})

test('releases at most maxConcurrency jobs at once and runs all of them', async ({ platform }) => {
  const relay = await platform.newRelay()
  const { batchId, jobIds } = await submitBatch(platform, { jobs: jobsFor(relay, 6), maxConcurrency: 2 })
  expect((await readBatch(platform, batchId)).maxConcurrency).toBe(2)
  const maxConcurrent = await completeInOrder(relay, [0, 0, 0, 0, 0, 0])
  expect(maxConcurrent, `${maxConcurrent} jobs were released at once`).toBeLessThanOrEqual(2)
  const { counts } = await waitForBatch(platform, batchId)
  expect(counts).toEqual({ queued: 0, running: 0, completed: 6, failed: 0, cancelled: 0 })
  expect(new Set(await reasonsOf(platform, jobIds))).toEqual(new Set(['Completed']))
})

test('cancelling a batch ends its queued jobs and stops the running ones', async ({ platform, admin }) => {
  const relay = await platform.newRelay()
  const { batchId, jobIds } = await submitBatch(platform, { jobs: jobsFor(relay, 3), maxConcurrency: 1 })
  const [runningJobId = ''] = await waitForJobs(relay, [])
  const { leaseId } = await relay.claim(runningJobId)
  expectStatus(await admin.post(`${batchPath}/${batchId}/cancel`), 202)
  await waitFor('the cancellation to reach the relay', async () =>
    expectStatus(await relay.heartbeat({ running: [runningJobId] }), 200).cancel.includes(runningJobId),
  )
  expectStatus(await relay.complete(runningJobId, leaseId, 'cancelled'), 200)
  const { counts } = await waitForBatch(platform, batchId)
  expect(counts).toEqual({ queued: 0, running: 0, completed: 0, failed: 0, cancelled: 3 })
  expect(new Set(await reasonsOf(platform, jobIds))).toEqual(new Set(['Cancelled cancelled_by_user']))
})

test('retries failed and cancelled jobs as a new batch and keeps the old one', async ({ platform, admin }) => {
  const relay = await platform.newRelay()
  const { batchId, jobIds } = await submitBatch(platform, { jobs: jobsFor(relay, 3), maxConcurrency: 1 })
  const retry = () => admin.post(`${batchPath}/${batchId}/retry`)
  await completeInOrder(relay, [0, 3])
  expectStatus(await retry(), 409, 'nothing_to_retry')
  expectStatus(await admin.post(`${batchPath}/${batchId}/cancel`), 202)
  const oldBatch = await waitForBatch(platform, batchId)
  const headers = { 'idempotency-key': randomUUID() }
  const retries = await Promise.all([1, 2].map(() => admin.post(`${batchPath}/${batchId}/retry`, undefined, headers)))
  const [retryBatch, repeated] = retries.map((response) => expectStatus(response, 202))
  expect(repeated).toEqual(retryBatch)
  platform.cancelLater(admin, `${batchPath}/${retryBatch.batchId}`)
  expect([retryBatch.submittedCount, retryBatch.jobIds.length]).toEqual([2, 2])
  expect((await readBatch(platform, retryBatch.batchId)).retryOf).toBe(batchId)
  const endedJobs = await Promise.all(jobIds.map((id: string) => platform.job(id)))
  const unfinishedScripts: string[] = endedJobs
    .filter(({ status }) => status !== 'Completed')
    .map(({ payload }) => payload.script)
  const retriedScripts: string[] = await Promise.all(
    retryBatch.jobIds.map(async (id: string) => (await platform.job(id)).payload.script),
  )
  expect(retriedScripts.toSorted()).toEqual(unfinishedScripts.toSorted())
  expect(await readBatch(platform, batchId)).toEqual(oldBatch)
  await completeInOrder(relay, [0, 0])
  expect((await waitForBatch(platform, retryBatch.batchId)).counts.completed).toBe(2)
  expectStatus(await admin.post(`${batchPath}/${retryBatch.batchId}/retry`), 409, 'nothing_to_retry')
})
