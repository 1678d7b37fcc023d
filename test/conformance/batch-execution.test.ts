import { expect } from 'vitest'
import { test } from './support/test.ts'
import { randomUUID } from 'node:crypto'
import { expectStatus } from './support/answer.ts'
import { batchPath, finishedBatch, jobFor, readBatch, submitBatch, told } from './support/batch.ts'
import type { Platform } from './support/platform.ts'
import type { Relay } from './support/relay.ts'
import { waitFor } from '../support/wait-for.ts'

/** Ends jobs in order of delivery with the given exit codes. Returns the maximum number of concurrent jobs. */
async function endOneByOne(relay: Relay, exitCodes: readonly number[]): Promise<number> {
  let most = 0
  for (const exitCode of exitCodes) {
    const [next = '', ...others] = await told(relay, [])
    most = Math.max(most, 1 + others.length)
    const { leaseId } = await relay.claim(next)
    expectStatus(await relay.complete(next, leaseId, exitCode), 200)
  }
  return most
}

const jobsFor = (relay: Relay, count: number) =>
  Array.from({ length: count }, (_, index) => jobFor(relay.clusterId, `echo ${index}`))

const reasonsOf = async (platform: Platform, jobIds: string[]) => {
  const jobs = await Promise.all(jobIds.map((id) => platform.job(id)))
  return jobs.map(({ status, statusReason }) => [status, statusReason].filter(Boolean).join(' '))
}

test('offers a relay each job of a batch once and updates the counts', async ({ platform, admin }) => {
  const relay = await platform.newRelay()
  const { batchId, jobIds } = await submitBatch(platform, { jobs: jobsFor(relay, 12) })
  const leases = new Map<string, string>()
  while (leases.size < jobIds.length) {
    for (const id of await told(relay, [...leases.keys()])) {
      expect(jobIds, id).toContain(id)
      expect(leases.has(id), id).toBe(false)
      leases.set(id, (await relay.claim(id)).leaseId)
    }
  }
  await waitFor('all are counted as running', async () => (await readBatch(platform, batchId)).counts.running === 12)
  for (const [index, id] of jobIds.entries()) {
    expectStatus(await relay.complete(id, leases.get(id) ?? '', index < 5 ? 3 : 0), 200)
  }
  const { counts } = await finishedBatch(platform, batchId)
  expect(counts).toEqual({ queued: 0, running: 0, completed: 7, failed: 5, cancelled: 0 })
  expectStatus(await admin.delete(`/api/v1/clusters/${relay.clusterId}`), 204)
})

test('releases at most maxConcurrency jobs at once and runs all of them', async ({ platform }) => {
  const relay = await platform.newRelay()
  const { batchId, jobIds } = await submitBatch(platform, { jobs: jobsFor(relay, 6), maxConcurrency: 2 })
  expect((await readBatch(platform, batchId)).maxConcurrency).toBe(2)
  const most = await endOneByOne(relay, [0, 0, 0, 0, 0, 0])
  expect(most, `${most} jobs were let go at once`).toBeLessThanOrEqual(2)
  const { counts } = await finishedBatch(platform, batchId)
  expect(counts).toEqual({ queued: 0, running: 0, completed: 6, failed: 0, cancelled: 0 })
  expect(new Set(await reasonsOf(platform, jobIds))).toEqual(new Set(['Completed']))
})

test('cancels unstarted jobs once failures exceed maxErrors', async ({ platform }) => {
  const relay = await platform.newRelay()
  const limits = { maxConcurrency: 1, maxErrors: 1 }
  const { batchId, jobIds } = await submitBatch(platform, { jobs: jobsFor(relay, 6), ...limits })
  await endOneByOne(relay, [3, 0, 3])
  const { counts } = await finishedBatch(platform, batchId)
  expect(counts).toEqual({ queued: 0, running: 0, completed: 1, failed: 2, cancelled: 3 })
  const reasons = await reasonsOf(platform, jobIds)
  expect(reasons.filter((reason) => reason === 'Failed exit_nonzero').length).toBe(2)
  expect(reasons.filter((reason) => reason === 'Cancelled batch_error_limit').length).toBe(3)
})

test('cancelling a batch ends its queued jobs and stops the running ones', async ({ platform, admin }) => {
  const relay = await platform.newRelay()
  const { batchId, jobIds } = await submitBatch(platform, { jobs: jobsFor(relay, 3), maxConcurrency: 1 })
  const [running = ''] = await told(relay, [])
  const { leaseId } = await relay.claim(running)
  expectStatus(await admin.post(`${batchPath}/${batchId}/cancel`), 202)
  await waitFor('the relay is asked to stop it', async () =>
    expectStatus(await relay.heartbeat({ running: [running] }), 200).cancel.includes(running),
  )
  expectStatus(await relay.complete(running, leaseId, 'cancelled'), 200)
  const { counts } = await finishedBatch(platform, batchId)
  expect(counts).toEqual({ queued: 0, running: 0, completed: 0, failed: 0, cancelled: 3 })
  expect(new Set(await reasonsOf(platform, jobIds))).toEqual(new Set(['Cancelled cancelled_by_user']))
})

test('retries failed and cancelled jobs as a new batch and keeps the old one', async ({ platform, admin }) => {
  const relay = await platform.newRelay()
  const { batchId, jobIds } = await submitBatch(platform, { jobs: jobsFor(relay, 3), maxConcurrency: 1 })
  const retry = () => admin.post(`${batchPath}/${batchId}/retry`)
  await endOneByOne(relay, [0, 3])
  expectStatus(await retry(), 409, 'nothing_to_retry')
  expectStatus(await admin.post(`${batchPath}/${batchId}/cancel`), 202)
  const old = await finishedBatch(platform, batchId)
  const headers = { 'idempotency-key': randomUUID() }
  const retries = await Promise.all([1, 2].map(() => admin.post(`${batchPath}/${batchId}/retry`, undefined, headers)))
  const [again, repeated] = retries.map((answer) => expectStatus(answer, 202))
  expect(repeated).toEqual(again)
  platform.cancelLater(admin, `${batchPath}/${again.batchId}`)
  expect([again.submittedCount, again.jobIds.length]).toEqual([2, 2])
  expect((await readBatch(platform, again.batchId)).retryOf).toBe(batchId)
  const ended = await Promise.all(jobIds.map((id: string) => platform.job(id)))
  const wanted: string[] = ended.filter(({ status }) => status !== 'Completed').map(({ payload }) => payload.script)
  const tried: string[] = await Promise.all(
    again.jobIds.map(async (id: string) => (await platform.job(id)).payload.script),
  )
  expect(tried.toSorted()).toEqual(wanted.toSorted())
  expect(await readBatch(platform, batchId)).toEqual(old)
  await endOneByOne(relay, [0, 0])
  expect((await finishedBatch(platform, again.batchId)).counts.completed).toBe(2)
  expectStatus(await admin.post(`${batchPath}/${again.batchId}/retry`), 409, 'nothing_to_retry')
})

test('accepts a batch once for one idempotency key', async ({ platform, admin }) => {
  const { id: clusterId } = await platform.newCluster()
  const body = { jobs: [jobFor(clusterId), jobFor(clusterId)] }
  const headers = { 'idempotency-key': randomUUID() }
  const answers = await Promise.all([1, 2, 3].map(() => admin.post(batchPath, body, headers)))
  const [first] = answers.map((answer) => expectStatus(answer, 202))
  for (const { body: accepted } of answers) expect(accepted).toEqual(first)
  expectStatus(await admin.post(batchPath, { jobs: [jobFor(clusterId)] }, headers), 422, 'idempotency_key_reused')
  expectStatus(await admin.post(`${batchPath}/${first.batchId}/cancel`), 202)
  await finishedBatch(platform, first.batchId)
  expectStatus(await admin.delete(`/api/v1/clusters/${clusterId}`), 204)
})
