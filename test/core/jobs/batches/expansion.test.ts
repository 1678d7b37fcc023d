import { execFile } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { beforeAll, expect, test } from 'vitest'
import * as Batch from '@platform/core/jobs/batches/batch'
import * as keys from '@platform/core/db/keys'
import { get, query } from '@platform/core/db/table'
import * as Job from '@platform/core/jobs/job'
import { list } from '@platform/core/jobs/list'
import { readOutput } from '@platform/core/jobs/output'
import { type Caller } from '@platform/core/caller'
import { callerOf, enrolledCluster, refusalOf, started } from '../../../support/world.ts'
import { book, countersOf, expanded, jobsFor, manyClusters, rowsOf, tallyOf, tend } from '../../support/batches.ts'
import { inboxOf, runJob, script } from '../../support/jobs.ts'
import { used } from '../../support/usage.ts'

beforeAll(started)

const execute = promisify(execFile)
const consumer = fileURLToPath(new URL('../../support/tend-batch.ts', import.meta.url))

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
  const caller = await callerOf()
  const clusters = await manyClusters(caller, 7)
  const { batchId, jobIds } = await Batch.submit(caller, { jobs: jobsFor(clusters, 500) })
  const { usage } = await used(() => tend(caller, batchId))
  expect(usage.calls.filter((call) => call === 'SendMessage')).toHaveLength(1)
  const rows = await rowsOf(caller, jobIds)
  expect(rows.map(({ id }) => id)).toEqual(jobIds)
  expect(new Set(rows.map(({ status, batchId: of }) => `${status} ${of}`))).toEqual(new Set([`Queued ${batchId}`]))
  const inboxes = await Promise.all(clusters.map(inboxOf))
  expect(inboxes.flat().toSorted()).toEqual(jobIds)
  const each = clusters.map((id) => rows.filter(({ clusterId }) => clusterId === id).length)
  expect(await countersOf(caller, clusters)).toEqual(each.map((count) => [count, count, count]))
  const { items } = await query({ pk: keys.batch(caller.organisationId, batchId).pk })
  expect(items.map(({ sk }) => sk)).toEqual(['BATCH'])
  await book(caller)
  expect(await totalsOf(caller)).toEqual({ queued: 500 })
})

test('an expansion that is killed after any of its transactions goes on where it stopped', async () => {
  const caller = await callerOf()
  const clusters = await manyClusters(caller, 60)
  const { batchId, jobIds } = await Batch.submit(caller, { jobs: jobsFor(clusters, 180) })
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
  await tend(caller, batchId)
  expect((await rowsOf(caller, jobIds)).map(({ id }) => id)).toEqual(jobIds)
  expect(await countersOf(caller, clusters)).toEqual(clusters.map(() => [3, 3, 3]))
  await book(caller)
  expect(await totalsOf(caller)).toEqual({ queued: 180 })
  expect((await Batch.read(caller, batchId)).counts).toMatchObject({ queued: 180 })
})

test('duplicate, late and shuffled messages to several consumers at once make every job once, and no count drifts', async () => {
  const caller = await callerOf()
  const worlds = await Promise.all(Array.from({ length: 5 }, () => enrolledCluster(caller)))
  const clusters = worlds.map(({ cluster }) => cluster.id)
  const batches = await Promise.all(
    [60, 40, 20].map((count) => Batch.submit(caller, { jobs: jobsFor(clusters, count) })),
  )
  const messages = batches.map(({ batchId }) => batchId)
  const late = [...messages, ...messages, ...messages].filter(() => Math.random() < 0.5)
  const consume = async (batchId: string) => {
    await tend(caller, batchId)
    await book(caller)
  }
  await Promise.all(shuffled([...messages, ...messages, ...late]).map(consume))
  const jobIds = batches.flatMap(({ jobIds: ids }) => ids)
  expect((await rowsOf(caller, jobIds)).length).toBe(120)
  expect(await countersOf(caller, clusters)).toEqual(clusters.map(() => [24, 24, 24]))

  // Four of five run, some of them badly, while messages still arrive.
  const runs = worlds.map(async (world, place) => {
    for (const id of shuffled(await inboxOf(world.cluster.id)).slice(0, 18)) {
      await runJob(world, id, indexOfTen(id) === 0 ? 3 : 0)
      if (Math.random() < 0.2) await consume(messages[place % 3] ?? '')
    }
  })
  await Promise.all(runs)
  await Promise.all([...Array(4)].map(() => book(caller)))
  await Promise.all(messages.map(consume))

  const rows = await rowsOf(caller, jobIds)
  expect(await countersOf(caller, clusters)).toEqual(clusters.map(() => [6, 6, 24]))
  for (const batch of batches) {
    const own = rows.filter(({ batchId }) => batchId === batch.batchId)
    expect((await Batch.read(caller, batch.batchId)).counts).toEqual(tallyOf(own))
  }
  const told = Object.entries(tallyOf(rows)).filter(([, count]) => count > 0)
  const totals = Object.entries(await totalsOf(caller)).filter(([, count]) => count !== 0)
  expect(Object.fromEntries(totals)).toEqual(Object.fromEntries(told))
})

const indexOfTen = (jobId: string): number => (jobId.codePointAt(jobId.length - 1) ?? 0) % 10

test('a job is cancelled before it stands in the table; the others go on', async () => {
  const caller = await callerOf()
  const clusters = await manyClusters(caller, 2)
  const { jobIds } = await Batch.submit(caller, { jobs: jobsFor(clusters, 100) })
  const cancelled = await Job.cancel(caller, jobIds[70] ?? '')
  expect(cancelled).toMatchObject({ status: 'Cancelled', statusReason: 'cancelled_by_user' })
  expect(await refusalOf(Job.cancel(caller, jobIds[70] ?? ''))).toBe('job_already_finished')
  expect(tallyOf(await rowsOf(caller, jobIds))).toMatchObject({ queued: 99, cancelled: 1 })
})

test('a batch is finished with its last job, told once, and never looked at again', async () => {
  const caller = await callerOf()
  const world = await enrolledCluster(caller)
  const { batchId, jobIds } = await expanded(caller, { jobs: jobsFor([world.cluster.id], 3) })
  for (const [index, id] of jobIds.entries()) {
    expect((await Batch.read(caller, batchId)).status).toBe('Running')
    await runJob(world, id, index)
    await Promise.all([book(caller), book(caller)])
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
  const caller = await callerOf()
  const world = await enrolledCluster(caller)
  const { batchId, jobIds } = await Batch.submit(caller, { jobs: [script(world.cluster.id)] })
  const [jobId = ''] = jobIds
  const watched = readOutput(caller, jobId, 0, 20)
  await tend(caller, batchId)
  await runJob(world, jobId)
  expect(await watched).toMatchObject({ items: [], status: 'Completed', finished: true })
})
