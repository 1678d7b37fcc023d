import assert from 'node:assert/strict'
import { randomUUID } from 'node:crypto'
import { answered } from './support/answer.ts'
import { batchPath, finishedBatch, jobFor, readBatch, submitBatch, told } from './support/batch.ts'
import type { Journeys, Platform } from './support/platform.ts'
import type { Relay } from './support/relay.ts'
import { until } from './support/until.ts'

/** Ends jobs one after another as they are told, each with the next exit code; answers how many were let go at most. */
async function endOneByOne(relay: Relay, exitCodes: readonly number[]): Promise<number> {
  let most = 0
  for (const exitCode of exitCodes) {
    const [next = '', ...others] = await told(relay, [])
    most = Math.max(most, 1 + others.length)
    const { leaseId } = await relay.claim(next)
    answered(await relay.complete(next, leaseId, exitCode), 200)
  }
  return most
}

const jobsFor = (relay: Relay, count: number) =>
  Array.from({ length: count }, (_, index) => jobFor(relay.clusterId, `echo ${index}`))

const reasonsOf = async (platform: Platform, jobIds: string[]) => {
  const jobs = await Promise.all(jobIds.map((id) => platform.job(id)))
  return jobs.map(({ status, statusReason }) => [status, statusReason].filter(Boolean).join(' '))
}

export const batchWork: Journeys = {
  'a relay is told of all jobs of a batch, each of them once, and the counts follow': async (platform) => {
    const relay = await platform.newRelay()
    const { batchId, jobIds } = await submitBatch(platform, { jobs: jobsFor(relay, 12) })
    const leases = new Map<string, string>()
    while (leases.size < jobIds.length) {
      for (const id of await told(relay, [...leases.keys()])) {
        assert.ok(jobIds.includes(id) && !leases.has(id), id)
        leases.set(id, (await relay.claim(id)).leaseId)
      }
    }
    await until('all are counted as running', async () => (await readBatch(platform, batchId)).counts.running === 12)
    for (const [index, id] of jobIds.entries()) {
      answered(await relay.complete(id, leases.get(id) ?? '', index < 5 ? 3 : 0), 200)
    }
    const { counts } = await finishedBatch(platform, batchId)
    assert.deepEqual(counts, { queued: 0, running: 0, completed: 7, failed: 5, cancelled: 0 })
    answered(await (await platform.admin).delete(`/api/v1/clusters/${relay.clusterId}`), 204)
  },

  'with maxConcurrency no more jobs than that wait or run at once, and all of them have their turn': async (
    platform,
  ) => {
    const relay = await platform.newRelay()
    const { batchId, jobIds } = await submitBatch(platform, { jobs: jobsFor(relay, 6), maxConcurrency: 2 })
    assert.equal((await readBatch(platform, batchId)).maxConcurrency, 2)
    const most = await endOneByOne(relay, [0, 0, 0, 0, 0, 0])
    assert.ok(most <= 2, `${most} jobs were let go at once`)
    const { counts } = await finishedBatch(platform, batchId)
    assert.deepEqual(counts, { queued: 0, running: 0, completed: 6, failed: 0, cancelled: 0 })
    assert.deepEqual(new Set(await reasonsOf(platform, jobIds)), new Set(['Completed']))
  },

  'after more failures than maxErrors what has not begun is cancelled, and says why': async (platform) => {
    const relay = await platform.newRelay()
    const limits = { maxConcurrency: 1, maxErrors: 1 }
    const { batchId, jobIds } = await submitBatch(platform, { jobs: jobsFor(relay, 6), ...limits })
    await endOneByOne(relay, [3, 0, 3])
    const { counts } = await finishedBatch(platform, batchId)
    assert.deepEqual(counts, { queued: 0, running: 0, completed: 1, failed: 2, cancelled: 3 })
    const reasons = await reasonsOf(platform, jobIds)
    assert.equal(reasons.filter((reason) => reason === 'Failed exit_nonzero').length, 2)
    assert.equal(reasons.filter((reason) => reason === 'Cancelled batch_error_limit').length, 3)
  },

  'a cancelled batch ends its queued jobs, and asks running ones to stop': async (platform) => {
    const admin = await platform.admin
    const relay = await platform.newRelay()
    const { batchId, jobIds } = await submitBatch(platform, { jobs: jobsFor(relay, 3), maxConcurrency: 1 })
    const [running = ''] = await told(relay, [])
    const { leaseId } = await relay.claim(running)
    answered(await admin.post(`${batchPath}/${batchId}/cancel`), 202)
    await until('the relay is asked to stop it', async () =>
      answered(await relay.beat({ running: [running] }), 200).cancel.includes(running),
    )
    answered(await relay.complete(running, leaseId, 'cancelled'), 200)
    const { counts } = await finishedBatch(platform, batchId)
    assert.deepEqual(counts, { queued: 0, running: 0, completed: 0, failed: 0, cancelled: 3 })
    assert.deepEqual(new Set(await reasonsOf(platform, jobIds)), new Set(['Cancelled cancelled_by_user']))
  },

  'what failed or was cancelled is tried again as a new batch; the old one stays as it is': async (platform) => {
    const admin = await platform.admin
    const relay = await platform.newRelay()
    const { batchId, jobIds } = await submitBatch(platform, { jobs: jobsFor(relay, 3), maxConcurrency: 1 })
    const retry = () => admin.post(`${batchPath}/${batchId}/retry`)
    await endOneByOne(relay, [0, 3])
    answered(await retry(), 409, 'nothing_to_retry')
    answered(await admin.post(`${batchPath}/${batchId}/cancel`), 202)
    const old = await finishedBatch(platform, batchId)
    const headers = { 'idempotency-key': randomUUID() }
    const retries = await Promise.all([1, 2].map(() => admin.post(`${batchPath}/${batchId}/retry`, undefined, headers)))
    const [again, repeated] = retries.map((answer) => answered(answer, 202))
    assert.deepEqual(repeated, again)
    platform.leftovers.started(admin, `${batchPath}/${again.batchId}`)
    assert.deepEqual([again.submittedCount, again.jobIds.length], [2, 2])
    assert.equal((await readBatch(platform, again.batchId)).retryOf, batchId)
    const ended = await Promise.all(jobIds.map((id: string) => platform.job(id)))
    const wanted: string[] = ended.filter(({ status }) => status !== 'Completed').map(({ payload }) => payload.script)
    const tried: string[] = await Promise.all(
      again.jobIds.map(async (id: string) => (await platform.job(id)).payload.script),
    )
    assert.deepEqual(tried.toSorted(), wanted.toSorted())
    assert.deepEqual(await readBatch(platform, batchId), old)
    await endOneByOne(relay, [0, 0])
    assert.equal((await finishedBatch(platform, again.batchId)).counts.completed, 2)
    answered(await admin.post(`${batchPath}/${again.batchId}/retry`), 409, 'nothing_to_retry')
  },

  'a batch sent again with its key is accepted once': async (platform) => {
    const admin = await platform.admin
    const { id: clusterId } = await platform.newCluster()
    const body = { jobs: [jobFor(clusterId), jobFor(clusterId)] }
    const headers = { 'idempotency-key': randomUUID() }
    const answers = await Promise.all([1, 2, 3].map(() => admin.post(batchPath, body, headers)))
    const [first] = answers.map((answer) => answered(answer, 202))
    for (const { body: accepted } of answers) assert.deepEqual(accepted, first)
    answered(await admin.post(batchPath, { jobs: [jobFor(clusterId)] }, headers), 422, 'idempotency_key_reused')
    answered(await admin.post(`${batchPath}/${first.batchId}/cancel`), 202)
    await finishedBatch(platform, first.batchId)
    answered(await admin.delete(`/api/v1/clusters/${clusterId}`), 204)
  },
}
