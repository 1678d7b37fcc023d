import { expectStatus } from './answer.ts'
import type { Platform } from './platform.ts'
import type { Relay } from './relay.ts'
import { waitFor } from '../../support/wait-for.ts'

export const batchPath = '/api/v1/jobs/batch'

export const jobFor = (clusterId: string, script = 'uname') => ({
  clusterId,
  type: 'InvokeScript',
  payload: { script },
})

export async function submitBatch(platform: Platform, body: object): Promise<any> {
  const admin = await platform.admin
  const acceptedBatch = expectStatus(await admin.post(batchPath, body), 202)
  platform.cancelLater(admin, `${batchPath}/${acceptedBatch.batchId}`)
  return acceptedBatch
}

export const readBatch = async (platform: Platform, batchId: string): Promise<any> =>
  expectStatus(await (await platform.admin).get(`${batchPath}/${batchId}`), 200)

export const waitForBatch = (platform: Platform, batchId: string): Promise<any> =>
  waitFor(`the end of ${batchId}`, async () => {
    const batch = await readBatch(platform, batchId)
    return batch.status === 'Finished' && batch
  })

export const waitForJobs = (relay: Relay, running: readonly string[]): Promise<string[]> =>
  waitFor('a job for the relay', async () => {
    const { jobs } = expectStatus(await relay.heartbeat({ running: [...running] }), 200)
    return jobs.length > 0 && jobs
  })
