import { beforeAll, expect, test } from 'vitest'
import * as Batch from '@platform/core/jobs/batches/batch'
import { type Caller } from '@platform/core/caller'
import { shiftClock } from '@platform/core/clock'
import * as Job from '@platform/core/jobs/job'
import { claim, complete } from '@platform/core/jobs/claim'
import { heartbeat } from '@platform/core/relays/heartbeat'
import { sweep } from '@platform/core/background/sweep'
import { callerOf, enrolledCluster, refusalOf, started } from '../../../support/world.ts'
import { book, countersOf, expanded, jobsFor, rowsOf, tallyOf, tend } from '../../support/batches.ts'
import { completion, inboxOf, runJob, script, type World } from '../../support/jobs.ts'

beforeAll(started)

const inboxes = async (worlds: readonly World[]) => Promise.all(worlds.map(({ cluster }) => inboxOf(cluster.id)))

/** Runs everything that waits, round for round, and answers how many jobs waited in each round. */
async function runAll(caller: Caller, worlds: readonly World[], exitCode = 0): Promise<number[]> {
  const rounds: number[] = []
  for (;;) {
    const waiting = await inboxes(worlds)
    if (waiting.flat().length === 0) return rounds
    rounds.push(waiting.flat().length)
    for (const [place, world] of worlds.entries()) {
      for (const id of waiting[place] ?? []) await runJob(world, id, exitCode)
    }
    await book(caller)
  }
}

test('no more jobs than maxConcurrency wait or run at once, and all of them run in the end', async () => {
  const caller = await callerOf()
  const worlds = [await enrolledCluster(caller), await enrolledCluster(caller)]
  const clusters = worlds.map(({ cluster }) => cluster.id)
  const { batchId, jobIds } = await expanded(caller, { jobs: jobsFor(clusters, 50), maxConcurrency: 7 })
  expect(await runAll(caller, worlds)).toEqual([7, 7, 7, 7, 7, 7, 7, 1])
  expect(tallyOf(await rowsOf(caller, jobIds))).toMatchObject({ completed: 50 })
  expect(await Batch.read(caller, batchId)).toMatchObject({
    status: 'Finished',
    maxConcurrency: 7,
    counts: { completed: 50 },
  })
  expect(await countersOf(caller, clusters)).toEqual([
    [0, 0, 25],
    [0, 0, 25],
  ])
})

test('with maxConcurrency one job follows another in the order of the request', async () => {
  const caller = await callerOf()
  const world = await enrolledCluster(caller)
  const { batchId, jobIds } = await expanded(caller, { jobs: jobsFor([world.cluster.id], 5), maxConcurrency: 1 })
  for (const id of jobIds) {
    expect(await inboxOf(world.cluster.id)).toEqual([id])
    await runJob(world, id)
    await Promise.all([book(caller), tend(caller, batchId), book(caller), tend(caller, batchId)])
  }
})

test('jobs that end while they are held back make no room, and are passed over in their turn', async () => {
  const caller = await callerOf()
  const world = await enrolledCluster(caller)
  const submission = { jobs: jobsFor([world.cluster.id], 12), maxConcurrency: 3 }
  const { batchId, jobIds } = await expanded(caller, submission)
  // Held, and its turn would be next; held, much later; waiting already.
  for (const index of [3, 4, 9, 0]) {
    await Job.cancel(caller, jobIds[index] ?? '')
    await book(caller)
    await tend(caller, batchId)
    expect((await inboxOf(world.cluster.id)).length).toBeLessThanOrEqual(3)
  }
  expect(await inboxOf(world.cluster.id)).toEqual([1, 2, 5].map((index) => jobIds[index]))
  expect(await runAll(caller, [world])).toEqual([3, 3, 2])
  expect(await Batch.read(caller, batchId)).toMatchObject({
    status: 'Finished',
    counts: { completed: 8, cancelled: 4 },
  })
})

test('the sweep lets jobs go that were forgotten, and their time begins then', async () => {
  const caller = await callerOf()
  const world = await enrolledCluster(caller)
  const jobs = Array.from({ length: 3 }, () => script(world.cluster.id, {}, { deliverWithinSeconds: 100 }))
  const { batchId, jobIds } = await expanded(caller, { jobs, maxConcurrency: 1 })
  expect(await refusalOf(claim(world.request(), jobIds[1] ?? '', undefined))).toBe('job_not_claimable')
  shiftClock(101_000)
  await sweep()
  expect(await Job.read(caller, jobIds[0] ?? '')).toMatchObject({ status: 'Failed', statusReason: 'delivery_timeout' })
  await book(caller)
  expect(await inboxOf(world.cluster.id)).toEqual([jobIds[1]])
  const { expiresAt } = await Job.read(caller, jobIds[1] ?? '')
  expect(Date.parse(expiresAt)).toBeGreaterThan(Date.now() + 101_000 + 90_000)
  shiftClock(50_000)
  await tend(caller, batchId)
  expect(await inboxOf(world.cluster.id)).toEqual([jobIds[1]])
  shiftClock(-151_000)
})

test('once more than maxErrors have failed, what has not begun is cancelled and what runs goes on', async () => {
  const caller = await callerOf()
  const world = await enrolledCluster(caller)
  const { batchId, jobIds } = await expanded(caller, { jobs: jobsFor([world.cluster.id], 40), maxErrors: 2 })
  const [running = '', ...others] = jobIds
  const { leaseId } = await claim(world.request(), running, undefined)
  for (const id of others.slice(0, 2)) await runJob(world, id, 1)
  await book(caller)
  expect((await Batch.read(caller, batchId)).counts).toMatchObject({ failed: 2, queued: 37, running: 1 })
  await runJob(world, others[2] ?? '', 1)
  await book(caller)
  const stopped = await rowsOf(caller, jobIds.slice(4))
  expect(stopped.map(({ status, statusReason }) => `${status} ${statusReason}`)).toEqual(
    Array(36).fill('Cancelled batch_error_limit'),
  )
  expect((await heartbeat(world.request(), { ...world.beat, running: [running] })).answer.cancel).toEqual([])
  await complete(world.request(), running, completion(world, leaseId))
  await book(caller)
  expect(await Batch.read(caller, batchId)).toMatchObject({
    status: 'Finished',
    maxErrors: 2,
    counts: { queued: 0, running: 0, completed: 1, failed: 3, cancelled: 36 },
  })
  expect(await countersOf(caller, [world.cluster.id])).toEqual([[0, 0, 40]])
})

test('maxErrors 0 stops at the first failure, and counts no cancelled job as one', async () => {
  const caller = await callerOf()
  const world = await enrolledCluster(caller)
  const { batchId, jobIds } = await expanded(caller, {
    jobs: jobsFor([world.cluster.id], 9),
    maxErrors: 0,
    maxConcurrency: 2,
  })
  await Job.cancel(caller, jobIds[0] ?? '')
  await book(caller)
  await runJob(world, jobIds[1] ?? '', 0)
  await book(caller)
  expect((await Batch.read(caller, batchId)).counts).toMatchObject({ queued: 7, completed: 1, cancelled: 1 })
  await runJob(world, jobIds[2] ?? '', 9)
  await book(caller)
  expect(await Batch.read(caller, batchId)).toMatchObject({
    status: 'Finished',
    counts: { completed: 1, failed: 1, cancelled: 7 },
  })
})
