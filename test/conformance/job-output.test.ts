import { expect } from 'vitest'
import { test } from './support/test.ts'
import { expectStatus, invalidFields } from './support/answer.ts'
import type { Platform } from './support/platform.ts'

const outputPath = (jobId: string, query: string) => `/api/v1/jobs/${jobId}/output?${query}`

/** Reads output from an offset, waiting for more or for the end. */
const waitFor = async (platform: Platform, jobId: string, offset: number) =>
  expectStatus(await (await platform.admin).get(outputPath(jobId, `offset=${offset}&waitSeconds=20`)), 200)

test('returns output as soon as it arrives and the end of the job when it ends', async ({ platform }) => {
  const relay = await platform.newRelay()
  const { jobId, leaseId } = await platform.running(relay)
  const forMore = waitFor(platform, jobId, 6)
  const forFirst = waitFor(platform, jobId, 0)
  expectStatus(await relay.output(jobId, { leaseId, seq: 0, data: 'first\n' }), 200)
  // The first request would return first if both waited for their timeouts.
  const live = await Promise.race([forMore, forFirst])
  expect([live.items[0]?.data, live.nextOffset, live.finished]).toEqual(['first\n', 6, false])
  expectStatus(await relay.complete(jobId, leaseId, 0), 200)
  expect(await forMore).toEqual({ items: [], nextOffset: 6, status: 'Completed', finished: true })
})

test('returns immediately when output exists or the job has ended', async ({ platform, admin }) => {
  const relay = await platform.newRelay()
  const { jobId, leaseId } = await platform.running(relay)
  expectStatus(await relay.output(jobId, { leaseId, seq: 0, data: 'first\n' }), 200)
  const read = async (offset: number) =>
    expectStatus(await admin.get(outputPath(jobId, `offset=${offset}&waitSeconds=20`)), 200)
  expect((await read(0)).items[0].data).toBe('first\n')
  expectStatus(await relay.complete(jobId, leaseId, 3), 200)
  expect(await read(6)).toEqual({ items: [], nextOffset: 6, status: 'Failed', finished: true })
  expect((await read(0)).finished).toBe(true)
})

test('sends the output to several readers', async ({ platform }) => {
  const relay = await platform.newRelay()
  const { jobId, leaseId } = await platform.running(relay)
  const readers = Array.from({ length: 5 }, () => waitFor(platform, jobId, 0))
  expectStatus(await relay.output(jobId, { leaseId, seq: 0, data: 'Ω\n' }), 200)
  for (const { items } of await Promise.all(readers)) expect(items[0].data).toBe('Ω\n')
  expectStatus(await relay.complete(jobId, leaseId, 0), 200)
})

test('returns when a job is cancelled', async ({ platform, admin }) => {
  const { id: clusterId } = await platform.newCluster()
  const jobId = await platform.submit(clusterId)
  const waiting = waitFor(platform, jobId, 0)
  expectStatus(await admin.post(`/api/v1/jobs/${jobId}/cancel`), 202)
  const { status, finished } = await waiting
  expect([status, finished]).toEqual(['Cancelled', true])
})

test('rejects an invalid wait time or offset and names it', async ({ platform, admin }) => {
  const { id: clusterId } = await platform.newCluster()
  const jobId = await platform.submit(clusterId)
  for (const value of ['21', '-1', '1.5', 'x', '', '1e1']) {
    const answer = await admin.get(outputPath(jobId, `waitSeconds=${value}`))
    expect(invalidFields(answer)).toEqual(['query /waitSeconds'])
  }
  expect(invalidFields(await admin.get(outputPath(jobId, 'offset=-1')))).toEqual(['query /offset'])
  expectStatus(await admin.get(outputPath('nothing', 'waitSeconds=20')), 404, 'job_not_found')
})
