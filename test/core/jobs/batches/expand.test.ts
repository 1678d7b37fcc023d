import { execFile } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import type { Caller } from '@platform/core/caller'
import * as keys from '@platform/core/db/keys'
import { get, query, remove, replace } from '@platform/core/db/table'
import { transact } from '@platform/core/db/transact'
import * as Batch from '@platform/core/jobs/batches/batch'
import * as Job from '@platform/core/jobs/job'
import { list } from '@platform/core/jobs/list'
import { readOutput } from '@platform/core/jobs/output'
import { beforeAll, expect, test } from 'vitest'
import { advanceClock } from '../../../support/clock.ts'
import { bootstrapPlatform, callerWithCluster, newCaller } from '../../../support/fixtures.ts'
import {
  advance,
  clusterCounters,
  jobRecords,
  jobsForClusters,
  runProjections,
  storeClusters,
  submitAndExpand,
} from '../../support/batches.ts'
import { inboxItems, runJob, scriptJob } from '../../support/jobs.ts'
import { measureUsage } from '../../support/usage.ts'

beforeAll(bootstrapPlatform)

const worker = fileURLToPath(new URL('../../support/advance-batch.ts', import.meta.url))

/** Runs a worker process with a failpoint; returns whether it was killed there. */
async function isKilled({ organisationId }: Caller, batchId: string, failpoint: string): Promise<boolean> {
  const env = { ...process.env, PLAT_FAILPOINT: failpoint }
  return promisify(execFile)(process.execPath, [worker, organisationId, batchId], { env }).then(
    () => false,
    ({ signal }: { signal: string }) => signal === 'SIGKILL',
  )
}

test('expansion stores 500 jobs like single jobs and deletes the chunks, with one message', async () => {
  const caller = await newCaller()
  const clusterIds = await storeClusters(caller, 7)
  const { batchId, jobIds } = await Batch.submit(caller, { jobs: jobsForClusters(clusterIds, 500) })
  const { usage } = await measureUsage(() => advance(caller, batchId))
  expect(usage.calls.filter((call) => call === 'SendMessage')).toHaveLength(1)
  const records = await jobRecords(caller, jobIds)
  expect(records.map(({ id }) => id)).toEqual(jobIds)
  for (const record of records) expect(record).toMatchObject({ status: 'Queued', batchId })
  expect((await Promise.all(clusterIds.map(inboxItems))).flat().toSorted()).toEqual(jobIds)
  const counts = clusterIds.map((id) => records.filter(({ clusterId }) => clusterId === id).length)
  expect(await clusterCounters(caller, clusterIds)).toEqual(counts.map((count) => [count, count, count]))
  const { items } = await query({ pk: keys.batch(caller.organisationId, batchId).pk })
  expect(items.map(({ sk }) => sk)).toEqual(['BATCH'])
  await runProjections(caller)
  expect(await get(keys.jobTotals(caller.organisationId))).toMatchObject({ total: 500, Queued: 500 })
})

test('an expansion killed after any transaction continues there', async () => {
  const caller = await newCaller()
  const clusterIds = await storeClusters(caller, 60)
  const { batchId, jobIds } = await Batch.submit(caller, { jobs: jobsForClusters(clusterIds, 180) })
  let kills = 0
  while (await isKilled(caller, batchId, 'batch.expanding=kill')) {
    kills++
    expect((await list(caller, { batchId, page: 1, pageSize: 100 })).totalCount).toBe(180)
    for (const id of jobIds.filter((_, index) => index % 45 === 0)) {
      expect(await Job.read(caller, id)).toMatchObject({ id, status: 'Queued' })
    }
    if (kills > 6) break
  }
  expect(kills).toBeGreaterThanOrEqual(6)
  expect(await isKilled(caller, batchId, 'batch.expanded=kill')).toBe(true)
  await advance(caller, batchId)
  expect((await jobRecords(caller, jobIds)).map(({ id }) => id)).toEqual(jobIds)
  expect(await clusterCounters(caller, clusterIds)).toEqual(clusterIds.map(() => [3, 3, 3]))
  await runProjections(caller)
  expect(await get(keys.jobTotals(caller.organisationId))).toMatchObject({ total: 180, Queued: 180 })
  expect((await Batch.read(caller, batchId)).counts).toMatchObject({ queued: 180 })
})

test('concurrent projections finish a batch once, with its last job', async () => {
  const { caller, enrolled } = await callerWithCluster()
  const { batchId, jobIds } = await submitAndExpand(caller, { jobs: jobsForClusters([enrolled.cluster.id], 3) })
  for (const [index, id] of jobIds.entries()) {
    expect((await Batch.read(caller, batchId)).status).toBe('Running')
    await runJob(enrolled, id, index)
    await Promise.all([runProjections(caller), runProjections(caller)])
  }
  expect(await Batch.read(caller, batchId)).toMatchObject({
    status: 'Finished',
    finishedAt: expect.any(String),
    counts: { queued: 0, running: 0, completed: 1, failed: 2, cancelled: 0 },
  })
  expect(await get(keys.batch(caller.organisationId, batchId))).not.toHaveProperty('duepk')
  expect((await query({ pk: keys.outbox(caller.organisationId, '').pk })).items).toEqual([])
})

test('a late projection of a start does not finish the batch again', async () => {
  const { caller, enrolled } = await callerWithCluster()
  const { pk } = keys.outbox(caller.organisationId, '')
  const { batchId, jobIds } = await submitAndExpand(caller, { jobs: jobsForClusters([enrolled.cluster.id], 2) })
  await runProjections(caller)
  for (const id of jobIds) await runJob(enrolled, id)

  const { items } = await query({ pk })
  const started = items.find(({ record }) => String(record).includes('"job.started"'))
  const { pk: _, sk, ...attributes } = started ?? {}
  await transact([remove({ pk, sk: String(sk) })])
  await runProjections(caller)
  const finished = await Batch.read(caller, batchId)
  expect(finished).toMatchObject({ status: 'Finished', counts: { running: 0, completed: 2 } })

  advanceClock(1000)
  await transact([replace({ pk, sk: String(sk) }, attributes)])
  await runProjections(caller)
  expect(await Batch.read(caller, batchId)).toEqual(finished)
})

test('waits for output of a job that is not stored yet', async () => {
  const { caller, enrolled } = await callerWithCluster()
  const { batchId, jobIds } = await Batch.submit(caller, { jobs: [scriptJob(enrolled.cluster.id)] })
  const [jobId = ''] = jobIds
  const output = readOutput(caller, jobId, 0, 20)
  await advance(caller, batchId)
  await runJob(enrolled, jobId)
  expect(await output).toMatchObject({ items: [], status: 'Completed', finished: true })
})
