import assert from 'node:assert/strict'
import { setTimeout as delay } from 'node:timers/promises'
import { SendMessageCommand, SQSClient } from '@aws-sdk/client-sqs'
import { clientSettings } from '@platform/local/emulators/http/environment'
import { expectStatus } from '../../../conformance/support/answer.ts'
import { finishedBatch, jobFor, submitBatch } from '../../../conformance/support/batch.ts'
import { Platform } from '../../../conformance/support/platform.ts'
import { waitFor } from '../../../support/wait-for.ts'
import { own } from './act.ts'
import { swept, sweeps } from './sweep.ts'
import { type Scene, without } from './withholding.ts'

/** What becomes of messages that are lost on their way, and of those that nobody could handle. */

/** Sends a message to a queue of the platform, as AWS does with those that nobody could handle. */
export async function sendTo({ simulator }: Scene, queue: string, message: object): Promise<void> {
  const client = new SQSClient(clientSettings(simulator.cloud.sqsUrl, simulator.cloud.accessKeyId))
  const QueueUrl = `${simulator.cloud.sqsUrl}/000000000000/platform-dev-${queue}`
  await client.send(new SendMessageCommand({ QueueUrl, MessageBody: JSON.stringify(message) }))
  client.destroy()
}

/** Submits a job whose message is lost. */
const submitUnheard = async (scene: Scene, clusterId: string): Promise<string> =>
  without(scene, ['jobs', 'queue:jobs'], async () => scene.platform.as(await scene.platform.tenant).submit(clusterId))

/** Submits a batch whose message is lost. */
const batchUnheard = async (scene: Scene, clusterId: string): Promise<any> =>
  without(scene, ['jobs', 'queue:batches'], async () =>
    submitBatch(scene.platform.as(await scene.platform.tenant), { jobs: [jobFor(clusterId)] }),
  )

const notificationAbout = async ({ platform }: Scene, resource: string) => {
  const { client } = await platform.tenant
  await waitFor(`a notification about ${resource}`, async () =>
    expectStatus(await client.get('/api/v1/notifications?pageSize=100'), 200).items.some(
      (item: any) => item.resource === resource,
    ),
  )
}

export const jobBuried = own(
  'a job whose message ends in the dead-letter queue fails, and its submitter is told',
  async (scene) => {
    const { organisationId } = await scene.platform.tenant
    const theirs = scene.platform.as(await scene.platform.tenant)
    const { id: clusterId } = await theirs.newCluster()
    const jobId = await submitUnheard(scene, clusterId)
    await sendTo(scene, 'jobs-dead-letter', { organisationId, jobId })
    await waitFor('the job fails', async () => (await theirs.job(jobId)).status === 'Failed')
    assert.equal((await theirs.job(jobId)).statusReason, 'dead_lettered')
    await notificationAbout(scene, jobId)
  },
  { breaks: ['jobs'] },
)

export const batchBuried = own(
  'a batch whose message ends in the dead-letter queue finishes with its jobs failed',
  async (scene) => {
    const { organisationId } = await scene.platform.tenant
    const theirs = scene.platform.as(await scene.platform.tenant)
    const { id: clusterId } = await theirs.newCluster()
    const { batchId } = await batchUnheard(scene, clusterId)
    await sendTo(scene, 'batches-dead-letter', { organisationId, batchId })
    const { counts } = await finishedBatch(theirs, batchId)
    assert.equal(counts.failed, 1)
  },
  { breaks: ['jobs'] },
)

export const sweepJobs = own(
  'the sweep announces a job whose message was lost, and its relay is told',
  async (scene) => {
    const relay = await scene.platform.as(await scene.platform.tenant).newRelay()
    const jobId = await submitUnheard(scene, relay.clusterId)
    await swept(scene, 'the relay is told', async () => expectStatus(await relay.heartbeat(), 200).jobs.includes(jobId))
  },
  { breaks: ['jobs', ...sweeps] },
)

export const sweepBatches = own(
  'the sweep announces a batch whose message was lost, and its relay is told',
  async (scene) => {
    const relay = await scene.platform.as(await scene.platform.tenant).newRelay()
    await batchUnheard(scene, relay.clusterId)
    await swept(scene, 'the relay is told', async () => expectStatus(await relay.heartbeat(), 200).jobs.length > 0)
  },
  { breaks: ['jobs', ...sweeps] },
)

export const sweepEvents = own(
  'the sweep announces changes whose message was lost, and they are on record',
  async (scene) => {
    const { options, contract, cleanUp } = scene.platform
    // An organisation that nothing else is announced of: jobs would lead to its changes, too.
    const fresh = new Platform(options, contract, cleanUp)
    const { client } = await fresh.tenant
    const isOnRecord = async (id: string) =>
      expectStatus(await client.get(`/api/v1/platform/audit?resource=${id}`), 200).totalCount === 1
    const unheard = await waitFor('a change goes unheard', async () => {
      const { id } = await without(scene, ['sites', 'queue:events'], async () => fresh.as(await fresh.tenant).newSite())
      // Somebody may be at the books of the organisation still, and find it.
      await delay(1000)
      return !(await isOnRecord(id)) && id
    })
    await swept(scene, 'it is on record', () => isOnRecord(unheard))
  },
  { breaks: ['sites', ...sweeps] },
)
