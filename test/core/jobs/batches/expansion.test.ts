import { execFile } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import type { Caller } from '@platform/core/caller'
import { shiftClock } from '@platform/core/clock'
import * as keys from '@platform/core/db/keys'
import { get, query, remove, replace } from '@platform/core/db/table'
import { transact } from '@platform/core/db/transact'
import * as Batch from '@platform/core/jobs/batches/batch'
import * as Job from '@platform/core/jobs/job'
import { list } from '@platform/core/jobs/list'
import { readOutput } from '@platform/core/jobs/output'
import { beforeAll, expect, test } from 'vitest'
import { bootstrapPlatform, callerWithCluster, enrolledCluster, newCaller } from '../../../support/fixtures.ts'
import {
  advance,
  clusterCounters,
  countByStatus,
  jobRecords,
  jobsForClusters,
  runProjections,
  storeClusters,
  submitAndExpand,
} from '../../support/batches.ts'
import { inboxItems, runJob, scriptJob } from '../../support/jobs.ts'
import { measureUsage } from '../../support/usage.ts'

beforeAll(bootstrapPlatform)

const execute = promisify(execFile)
const consumer = fileURLToPath(new URL('../../support/advance-batch.ts', import.meta.url))

/** A consumer that dies at a failpoint; answers whether it got there. */
async function isKilled({ organisationId }: Caller, batchId: string, failpoint: string): Promise<boolean> {
  const env = { ...process.env, PLAT_FAILPOINT: failpoint }
  return execute(process.execPath, [consumer, organisationId, batchId], { env }).then(
    () => false,
    ({ signal }: { signal: string }) => signal === 'SIGKILL',
  )
}

const shuffled = <Value>(values: readonly Value[]): Value[] =>
  values
    .map((value) => ({ value, place: Math.random() }))
    .toSorted((a, b) => a.place - b.place)
    .map(({ value }) => value)

/** The totals of an organisation's jobs by status, as lists tell them. */
async function totalsOf({ organisationId }: Caller): Promise<Record<string, number>> {
  const { pk: _, sk: __, total: ___, ...totals } = (await get(keys.jobTotals(organisationId))) ?? {}
  return Object.fromEntries(Object.entries(totals).map(([status, count]) => [status.toLowerCase(), Number(count)]))
}

test('an expanded batch is what 500 single jobs would be: rows, inboxes, counters; its chunks are gone', async () => {
  const caller = await newCaller()
  const clusters = await storeClusters(caller, 7)
  const { batchId, jobIds } = await Batch.submit(caller, { jobs: jobsForClusters(clusters, 500) })
  const { usage } = await measureUsage(() => advance(caller, batchId))
  expect(usage.calls.filter((call) => call === 'SendMessage')).toHaveLength(1)
  const rows = await jobRecords(caller, jobIds)
  expect(rows.map(({ id }) => id)).toEqual(jobIds)
  expect(new Set(rows.map(({ status, batchId: of }) => `${status} ${of}`))).toEqual(new Set([`Queued ${batchId}`]))
  const inboxes = await Promise.all(clusters.map(inboxItems))
  expect(inboxes.flat().toSorted()).toEqual(jobIds)
  const each = clusters.map((id) => rows.filter(({ clusterId }) => clusterId === id).length)
  expect(await clusterCounters(caller, clusters)).toEqual(each.map((count) => [count, count, count]))
  const { items } = await query({ pk: keys.batch(caller.organisationId, batchId).pk })
  expect(items.map(({ sk }) => sk)).toEqual(['BATCH'])
  await runProjections(caller)
  expect(await totalsOf(caller)).toEqual({ queued: 500 })
})

test('an expansion that is killed after any of its transactions goes on where it stopped', async () => {
  const caller = await newCaller()
  const clusters = await storeClusters(caller, 60)
  const { batchId, jobIds } = await Batch.submit(caller, { jobs: jobsForClusters(clusters, 180) })
  let kills = 0
  while (await isKilled(caller, batchId, 'batch.expanding=kill')) {
    kills++
    const page = await list(caller, { batchId, page: 1, pageSize: 100 })
    expect(page.totalCount).toBe(180)
    for (const id of jobIds.filter((_, index) => index % 45 === 0)) {
      expect(await Job.read(caller, id)).toMatchObject({ id, status: 'Queued' })
    }
    if (kills > 6) break
  }
  expect(kills).toBeGreaterThanOrEqual(6)
  expect(await isKilled(caller, batchId, 'batch.expanded=kill')).toBe(true)
  await advance(caller, batchId)
  expect((await jobRecords(caller, jobIds)).map(({ id }) => id)).toEqual(jobIds)
  expect(await clusterCounters(caller, clusters)).toEqual(clusters.map(() => [3, 3, 3]))
  await runProjections(caller)
  expect(await totalsOf(caller)).toEqual({ queued: 180 })
  expect((await Batch.read(caller, batchId)).counts).toMatchObject({ queued: 180 })
})

test('duplicate, late and shuffled messages to several consumers at once make every job once, and no count drifts', async () => {
  const caller = await newCaller()
  const enrolledClusters = await Promise.all(Array.from({ length: 5 }, () => enrolledCluster(caller)))
  const clusters = enrolledClusters.map(({ cluster }) => cluster.id)
  const batches = await Promise.all(
    [60, 40, 20].map((count) => Batch.submit(caller, { jobs: jobsForClusters(clusters, count) })),
  )
  const messages = batches.map(({ batchId }) => batchId)
  const late = [...messages, ...messages, ...messages].filter(() => Math.random() < 0.5)
  const consume = async (batchId: string) => {
    await advance(caller, batchId)
    await runProjections(caller)
  }
  await Promise.all(shuffled([...messages, ...messages, ...late]).map(consume))
  const jobIds = batches.flatMap(({ jobIds: ids }) => ids)
  expect((await jobRecords(caller, jobIds)).length).toBe(120)
  expect(await clusterCounters(caller, clusters)).toEqual(clusters.map(() => [24, 24, 24]))

  // Four of five run, some of them badly, while messages still arrive.
  const runs = enrolledClusters.map(async (enrolled, place) => {
    for (const id of shuffled(await inboxItems(enrolled.cluster.id)).slice(0, 18)) {
      await runJob(enrolled, id, indexOfTen(id) === 0 ? 3 : 0)
      if (Math.random() < 0.2) await consume(messages[place % 3] ?? '')
    }
  })
  await Promise.all(runs)
  await Promise.all([...Array(4)].map(() => runProjections(caller)))
  await Promise.all(messages.map(consume))

  const rows = await jobRecords(caller, jobIds)
  expect(await clusterCounters(caller, clusters)).toEqual(clusters.map(() => [6, 6, 24]))
  for (const batch of batches) {
    const own = rows.filter(({ batchId }) => batchId === batch.batchId)
    expect((await Batch.read(caller, batch.batchId)).counts).toEqual(countByStatus(own))
  }
  const told = Object.entries(countByStatus(rows)).filter(([, count]) => count > 0)
  const totals = Object.entries(await totalsOf(caller)).filter(([, count]) => count !== 0)
  expect(Object.fromEntries(totals)).toEqual(Object.fromEntries(told))
})

const indexOfTen = (jobId: string): number => (jobId.codePointAt(jobId.length - 1) ?? 0) % 10

test('a batch is finished with its last job, told once, and never looked at again', async () => {
  const { caller, enrolled } = await callerWithCluster()
  const { batchId, jobIds } = await submitAndExpand(caller, { jobs: jobsForClusters([enrolled.cluster.id], 3) })
  for (const [index, id] of jobIds.entries()) {
    expect((await Batch.read(caller, batchId)).status).toBe('Running')
    await runJob(enrolled, id, index)
    await Promise.all([runProjections(caller), runProjections(caller)])
  }
  const batch = await Batch.read(caller, batchId)
  expect(batch).toMatchObject({
    status: 'Finished',
    counts: { queued: 0, running: 0, completed: 1, failed: 2, cancelled: 0 },
  })
  expect(batch.finishedAt).toBeDefined()
  expect(await get(keys.batch(caller.organisationId, batchId))).not.toHaveProperty('duepk')
  const { items } = await query({ pk: keys.outbox(caller.organisationId, '').pk })
  expect(items).toEqual([])
})

test('an output asked for with patience before its job stands in the table comes when the job has run', async () => {
  const { caller, enrolled } = await callerWithCluster()
  const { batchId, jobIds } = await Batch.submit(caller, { jobs: [scriptJob(enrolled.cluster.id)] })
  const [jobId = ''] = jobIds
  const watched = readOutput(caller, jobId, 0, 20)
  await advance(caller, batchId)
  await runJob(enrolled, jobId)
  expect(await watched).toMatchObject({ items: [], status: 'Completed', finished: true })
})

test('a batch finishes once, even where the start of a job reaches the books after the end of the last', async () => {
  const caller = await newCaller()
  const { pk } = keys.outbox(caller.organisationId, '')
  const enrolled = await enrolledCluster(caller)
  const { batchId } = await submitAndExpand(caller, { jobs: jobsForClusters([enrolled.cluster.id], 2) })
  await runProjections(caller)
  for (const id of await inboxItems(enrolled.cluster.id)) await runJob(enrolled, id)

  const { items } = await query({ pk })
  const late = items.find(({ record }) => String(record).includes('"job.started"'))
  const { pk: _, sk, ...kept } = late ?? {}
  await transact([remove({ pk, sk: String(sk) })])
  await runProjections(caller)
  const finished = await Batch.read(caller, batchId)
  expect(finished).toMatchObject({ status: 'Finished', counts: { running: 0, completed: 2 } })

  shiftClock(1000)
  await transact([replace({ pk, sk: String(sk) }, kept)])
  await runProjections(caller)
  expect(await Batch.read(caller, batchId)).toEqual(finished)
})
