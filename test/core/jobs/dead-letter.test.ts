import { beforeAll, expect, test } from 'vitest'
import { advanceClock } from '../../support/clock.ts'
import * as Batch from '@platform/core/jobs/batches/batch'
import { type Caller } from '@platform/core/caller'
import * as Cluster from '@platform/core/clusters/cluster'
import { config } from '@platform/core/config'
import * as keys from '@platform/core/db/keys'
import { get, update } from '@platform/core/db/table'
import { newId } from '@platform/core/id'
import * as Job from '@platform/core/jobs/job'
import { sweep } from '@platform/core/background/sweep'
import * as jobsConsumer from '../../../functions/queue/jobs.ts'
import * as batchesConsumer from '../../../functions/queue/batches.ts'
import * as buriedBatchesConsumer from '../../../functions/queue/batches-dead-letter.ts'
import * as buriedJobsConsumer from '../../../functions/queue/jobs-dead-letter.ts'
import { newCaller, bootstrapPlatform } from '../../support/fixtures.ts'
import { runProjections, jobsForClusters, storeClusters, jobRecords, countByStatus } from '../support/batches.ts'
import { inboxItems, scriptJob, waitingJob } from '../support/jobs.ts'
import { receiveMessages } from '../support/messages.ts'

beforeAll(bootstrapPlatform)

const event = (message: object) => ({ Records: [{ messageId: 'message', body: JSON.stringify(message) }] })
const handled = { batchItemFailures: [] }
const failed = { batchItemFailures: [{ itemIdentifier: 'message' }] }

/** A cluster to which nothing can be dispatched: its counter of waiting jobs counts no numbers. */
const poison = ({ organisationId }: Caller, clusterId: string) =>
  update(keys.cluster(organisationId, clusterId), { set: { waitingJobs: 'poison' } })

const cure = ({ organisationId }: Caller, clusterId: string) =>
  update(keys.cluster(organisationId, clusterId), { set: { waitingJobs: 0 } })

test('a job whose message nobody can handle fails, is told, and frees its cluster', async () => {
  const caller = await newCaller()
  const { organisationId } = caller
  const [clusterId = ''] = await storeClusters(caller, 1)
  const { id: jobId } = await Job.submit(caller, scriptJob(clusterId))
  await poison(caller, clusterId)
  expect(await jobsConsumer.handler(event({ organisationId, jobId }))).toEqual(failed)
  expect(await buriedJobsConsumer.handler(event({ organisationId, jobId }))).toEqual(handled)
  expect(await Job.read(caller, jobId)).toMatchObject({ status: 'Failed', statusReason: 'dead_lettered' })
  const record = await get(keys.jobTotals(organisationId))
  expect(record).toBeUndefined()
  await cure(caller, clusterId)
  await runProjections(caller)
  expect(await get(keys.jobTotals(organisationId))).toMatchObject({ total: 1, Failed: 1 })
  expect((await Cluster.find(organisationId, clusterId))?.activeJobs).toBe(0)
  expect(await buriedJobsConsumer.handler(event({ organisationId, jobId }))).toEqual(handled)
})

test('a dead-lettered message of a job that waits, or is nowhere, changes nothing', async () => {
  const { caller, jobId } = await waitingJob()
  const { organisationId } = caller
  for (const id of [jobId, newId('job')]) {
    expect(await buriedJobsConsumer.handler(event({ organisationId, jobId: id }))).toEqual(handled)
  }
  expect(await Job.read(caller, jobId)).toMatchObject({ status: 'Queued' })
})

test('a job that cannot even be read is left for people to look at', async () => {
  const caller = await newCaller()
  const { organisationId } = caller
  const [clusterId = ''] = await storeClusters(caller, 1)
  const { id: jobId } = await Job.submit(caller, scriptJob(clusterId))
  await update(keys.job(organisationId, jobId), { set: { timeoutSeconds: 'soon' } })
  expect(await jobsConsumer.handler(event({ organisationId, jobId }))).toEqual(failed)
  expect(await buriedJobsConsumer.handler(event({ organisationId, jobId }))).toEqual(handled)
  expect(await get(keys.job(organisationId, jobId))).toMatchObject({ status: 'Queued', timeoutSeconds: 'soon' })
})

test('the jobs of a batch that cannot be expanded fail; those that were expanded go on', async () => {
  const caller = await newCaller()
  const { organisationId } = caller
  const clusters = await storeClusters(caller, 2)
  const [good = '', bad = ''] = clusters
  const jobs = [...jobsForClusters([good], 60), ...jobsForClusters([bad], 60)]
  const { batchId, jobIds } = await Batch.submit(caller, { jobs, maxConcurrency: 100 })
  await poison(caller, bad)
  expect(await batchesConsumer.handler(event({ organisationId, batchId }))).toEqual(failed)
  const expandedBefore = (await jobRecords(caller, jobIds)).length
  expect(expandedBefore).toBeGreaterThan(0)
  expect(await buriedBatchesConsumer.handler(event({ organisationId, batchId }))).toEqual(handled)
  expect(await buriedBatchesConsumer.handler(event({ organisationId, batchId }))).toEqual(handled)
  await runProjections(caller)
  const rows = await jobRecords(caller, jobIds)
  expect(countByStatus(rows)).toMatchObject({ queued: expandedBefore, failed: 120 - expandedBefore })
  expect(new Set(rows.slice(expandedBefore).map(({ statusReason }) => statusReason))).toEqual(
    new Set(['dead_lettered']),
  )
  expect(await inboxItems(good)).toHaveLength(expandedBefore)
  expect((await Batch.read(caller, batchId)).counts).toEqual(countByStatus(rows))
  await cure(caller, bad)
  await Cluster.remove(caller, bad).catch(() => undefined)
  expect((await Cluster.find(organisationId, bad))?.activeJobs ?? 0).toBe(0)
})

test('a batch or a job whose message was lost is announced again by the sweep, until it is done', async () => {
  const caller = await newCaller()
  const { organisationId } = caller
  const [clusterId = ''] = await storeClusters(caller, 1)
  const { batchId } = await Batch.submit(caller, { jobs: [scriptJob(clusterId)] })
  const { id: jobId } = await Job.submit(caller, scriptJob(clusterId))
  await Promise.all([receiveMessages(config.PLAT_QUEUE_BATCHES), receiveMessages(config.PLAT_QUEUE_JOBS)])
  advanceClock(31_000)
  await sweep()
  expect(await receiveMessages(config.PLAT_QUEUE_BATCHES)).toContainEqual({ organisationId, batchId })
  expect(await receiveMessages(config.PLAT_QUEUE_JOBS)).toContainEqual({ organisationId, jobId })
  await batchesConsumer.handler(event({ organisationId, batchId }))
  await Batch.cancel(caller, batchId)
  await batchesConsumer.handler(event({ organisationId, batchId }))
  await runProjections(caller)
  await receiveMessages(config.PLAT_QUEUE_BATCHES)
  advanceClock(300_000)
  await sweep()
  expect(await receiveMessages(config.PLAT_QUEUE_BATCHES)).not.toContainEqual({ organisationId, batchId })
})
