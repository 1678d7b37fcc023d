import { beforeAll, expect, test } from 'vitest'
import { advanceClock } from '../../../support/clock.ts'
import * as Batch from '@platform/core/jobs/batches/batch'
import { type Caller } from '@platform/core/caller'
import * as Job from '@platform/core/jobs/job'
import { claim } from '@platform/core/jobs/claim'
import { sweep } from '@platform/core/background/sweep'
import {
  newCaller,
  enrolledCluster,
  bootstrapPlatform,
  callerWithCluster,
  expectError,
} from '../../../support/fixtures.ts'
import {
  runProjections,
  clusterCounters,
  submitAndExpand,
  jobsForClusters,
  jobRecords,
  countByStatus,
  advance,
} from '../../support/batches.ts'
import { inboxItems, runJob, scriptJob, type EnrolledCluster } from '../../support/jobs.ts'

beforeAll(bootstrapPlatform)

const inboxes = async (enrolledClusters: readonly EnrolledCluster[]) =>
  Promise.all(enrolledClusters.map(({ cluster }) => inboxItems(cluster.id)))

/** Runs everything that waits, round for round, and answers how many jobs waited in each round. */
async function runAll(caller: Caller, enrolledClusters: readonly EnrolledCluster[], exitCode = 0): Promise<number[]> {
  const rounds: number[] = []
  for (;;) {
    const waiting = await inboxes(enrolledClusters)
    if (waiting.flat().length === 0) return rounds
    rounds.push(waiting.flat().length)
    for (const [place, enrolled] of enrolledClusters.entries()) {
      for (const id of waiting[place] ?? []) await runJob(enrolled, id, exitCode)
    }
    await runProjections(caller)
  }
}

test('no more jobs than maxConcurrency wait or run at once, and all of them run in the end', async () => {
  const caller = await newCaller()
  const enrolledClusters = [await enrolledCluster(caller), await enrolledCluster(caller)]
  const clusters = enrolledClusters.map(({ cluster }) => cluster.id)
  const { batchId, jobIds } = await submitAndExpand(caller, { jobs: jobsForClusters(clusters, 50), maxConcurrency: 7 })
  expect(await runAll(caller, enrolledClusters)).toEqual([7, 7, 7, 7, 7, 7, 7, 1])
  expect(countByStatus(await jobRecords(caller, jobIds))).toMatchObject({ completed: 50 })
  expect(await Batch.read(caller, batchId)).toMatchObject({
    status: 'Finished',
    maxConcurrency: 7,
    counts: { completed: 50 },
  })
  expect(await clusterCounters(caller, clusters)).toEqual([
    [0, 0, 25],
    [0, 0, 25],
  ])
})

test('with maxConcurrency one job follows another in the order of the request', async () => {
  const { caller, enrolled } = await callerWithCluster()
  const { batchId, jobIds } = await submitAndExpand(caller, {
    jobs: jobsForClusters([enrolled.cluster.id], 5),
    maxConcurrency: 1,
  })
  for (const id of jobIds) {
    expect(await inboxItems(enrolled.cluster.id)).toEqual([id])
    await runJob(enrolled, id)
    await Promise.all([
      runProjections(caller),
      advance(caller, batchId),
      runProjections(caller),
      advance(caller, batchId),
    ])
  }
})

test('jobs that end while they are held back make no room, and are passed over in their turn', async () => {
  const { caller, enrolled } = await callerWithCluster()
  const submission = { jobs: jobsForClusters([enrolled.cluster.id], 12), maxConcurrency: 3 }
  const { batchId, jobIds } = await submitAndExpand(caller, submission)
  // Held, and its turn would be next; held, much later; waiting already.
  for (const index of [3, 4, 9, 0]) {
    await Job.cancel(caller, jobIds[index] ?? '')
    await runProjections(caller)
    await advance(caller, batchId)
    expect((await inboxItems(enrolled.cluster.id)).length).toBeLessThanOrEqual(3)
  }
  expect(await inboxItems(enrolled.cluster.id)).toEqual([1, 2, 5].map((index) => jobIds[index]))
  expect(await runAll(caller, [enrolled])).toEqual([3, 3, 2])
  expect(await Batch.read(caller, batchId)).toMatchObject({
    status: 'Finished',
    counts: { completed: 8, cancelled: 4 },
  })
})

test('the sweep lets jobs go that were forgotten, and their time begins then', async () => {
  const { caller, enrolled } = await callerWithCluster()
  const jobs = Array.from({ length: 3 }, () => scriptJob(enrolled.cluster.id, {}, { deliverWithinSeconds: 100 }))
  const { batchId, jobIds } = await submitAndExpand(caller, { jobs, maxConcurrency: 1 })
  await expectError(claim(enrolled.request(), jobIds[1] ?? '', undefined), 'job_not_claimable')
  advanceClock(101_000)
  await sweep()
  expect(await Job.read(caller, jobIds[0] ?? '')).toMatchObject({ status: 'Failed', statusReason: 'delivery_timeout' })
  await runProjections(caller)
  expect(await inboxItems(enrolled.cluster.id)).toEqual([jobIds[1]])
  const { expiresAt } = await Job.read(caller, jobIds[1] ?? '')
  expect(Date.parse(expiresAt)).toBeGreaterThan(Date.now() + 101_000 + 90_000)
  advanceClock(50_000)
  await advance(caller, batchId)
  expect(await inboxItems(enrolled.cluster.id)).toEqual([jobIds[1]])
})

test('maxErrors 0 stops at the first failure, and counts no cancelled job as one', async () => {
  const { caller, enrolled } = await callerWithCluster()
  const { batchId, jobIds } = await submitAndExpand(caller, {
    jobs: jobsForClusters([enrolled.cluster.id], 9),
    maxErrors: 0,
    maxConcurrency: 2,
  })
  await Job.cancel(caller, jobIds[0] ?? '')
  await runProjections(caller)
  await runJob(enrolled, jobIds[1] ?? '', 0)
  await runProjections(caller)
  expect((await Batch.read(caller, batchId)).counts).toMatchObject({ queued: 7, completed: 1, cancelled: 1 })
  await runJob(enrolled, jobIds[2] ?? '', 9)
  await runProjections(caller)
  expect(await Batch.read(caller, batchId)).toMatchObject({
    status: 'Finished',
    counts: { completed: 1, failed: 1, cancelled: 7 },
  })
})
