import assert from 'node:assert/strict'
import { answered, refusedFields } from './support/answer.ts'
import type { Journeys, Platform } from './support/platform.ts'

const outputPath = (jobId: string, query: string) => `/api/v1/jobs/${jobId}/output?${query}`

/** One read that waits for output behind an offset, or for the end. */
const waitFor = async (platform: Platform, jobId: string, offset: number) =>
  answered(await (await platform.admin).get(outputPath(jobId, `offset=${offset}&waitSeconds=20`)), 200)

export const liveOutput: Journeys = {
  'who waits for output has it as soon as it comes, and who waits for more has the end when it ends': async (
    platform,
  ) => {
    const relay = await platform.newRelay()
    const { jobId, leaseId } = await platform.running(relay)
    const forMore = waitFor(platform, jobId, 6)
    const forFirst = waitFor(platform, jobId, 0)
    answered(await relay.output(jobId, { leaseId, seq: 0, data: 'first\n' }), 200)
    // The other one has waited longer: were both answered when their time is over, it would come first.
    const live = await Promise.race([forMore, forFirst])
    assert.deepEqual([live.items[0]?.data, live.nextOffset, live.finished], ['first\n', 6, false])
    answered(await relay.complete(jobId, leaseId, 0), 200)
    assert.deepEqual(await forMore, { items: [], nextOffset: 6, status: 'Completed', finished: true })
  },

  'what is there already is answered at once, and so is a job that has ended': async (platform) => {
    const admin = await platform.admin
    const relay = await platform.newRelay()
    const { jobId, leaseId } = await platform.running(relay)
    answered(await relay.output(jobId, { leaseId, seq: 0, data: 'first\n' }), 200)
    const read = async (offset: number) =>
      answered(await admin.get(outputPath(jobId, `offset=${offset}&waitSeconds=20`)), 200)
    assert.equal((await read(0)).items[0].data, 'first\n')
    answered(await relay.complete(jobId, leaseId, 3), 200)
    assert.deepEqual(await read(6), { items: [], nextOffset: 6, status: 'Failed', finished: true })
    assert.equal((await read(0)).finished, true)
  },

  'several readers of one job all have its output': async (platform) => {
    const relay = await platform.newRelay()
    const { jobId, leaseId } = await platform.running(relay)
    const readers = Array.from({ length: 5 }, () => waitFor(platform, jobId, 0))
    answered(await relay.output(jobId, { leaseId, seq: 0, data: 'Ω\n' }), 200)
    for (const { items } of await Promise.all(readers)) assert.equal(items[0].data, 'Ω\n')
    answered(await relay.complete(jobId, leaseId, 0), 200)
  },

  'who waits for what is cancelled hears of it': async (platform) => {
    const { id: clusterId } = await platform.newCluster()
    const jobId = await platform.submit(clusterId)
    const waiting = waitFor(platform, jobId, 0)
    answered(await (await platform.admin).post(`/api/v1/jobs/${jobId}/cancel`), 202)
    const { status, finished } = await waiting
    assert.deepEqual([status, finished], ['Cancelled', true])
  },

  'a waiting time or an offset that is none is refused and named': async (platform) => {
    const { id: clusterId } = await platform.newCluster()
    const jobId = await platform.submit(clusterId)
    const admin = await platform.admin
    for (const value of ['21', '-1', '1.5', 'x', '', '1e1']) {
      const answer = await admin.get(outputPath(jobId, `waitSeconds=${value}`))
      assert.deepEqual(refusedFields(answer), ['query /waitSeconds'])
    }
    assert.deepEqual(refusedFields(await admin.get(outputPath(jobId, 'offset=-1'))), ['query /offset'])
    answered(await admin.get(outputPath('nothing', 'waitSeconds=20')), 404, 'job_not_found')
  },
}
