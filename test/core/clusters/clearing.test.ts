import * as Batch from '@platform/core/jobs/batches/batch'
import { type Caller } from '@platform/core/caller'
import { shiftClock } from '@platform/core/clock'
import * as Cluster from '@platform/core/clusters/cluster'
import * as keys from '@platform/core/db/keys'
import { query } from '@platform/core/db/table'
import * as Job from '@platform/core/jobs/job'
import { sweep } from '@platform/core/background/sweep'
import { beforeAll, expect, test, onTestFinished, vi } from 'vitest'
import { callerOf, enrolledCluster, started } from '../../support/world.ts'
import { book, expanded, jobsFor, tend } from '../support/batches.ts'
import { waitingJob } from '../support/jobs.ts'
import { atStoreCalls, type StoreCall } from '../support/store-hook.ts'

beforeAll(started)

/** A cluster that was removed when so many of its jobs had ended. */
async function removedCluster(caller: Caller, jobs: number): Promise<string> {
  const { id } = (await enrolledCluster(caller)).cluster
  const { batchId } = await expanded(caller, { jobs: jobsFor([id], jobs) })
  await Batch.cancel(caller, batchId)
  await tend(caller, batchId)
  await book(caller)
  await Cluster.remove(caller, id)
  return id
}

const jobsLeft = async (clusterId: string): Promise<number> =>
  (await query({ index: 'gsi1', pk: keys.clusterJobs(clusterId) })).items.length

/** Whether a call asks for jobs of one of these clusters, a part of them at a time. */
const looksForJobs = ({ input }: StoreCall, clusterIds: readonly string[]): boolean =>
  input.Limit !== undefined &&
  clusterIds.some((id) => keys.clusterJobs(id) === input.ExpressionAttributeValues?.[':pk'])

/** A sweep's time is what the clock says: it stands still but for what a test adds, however slow the machine is. */
function stopClock(): void {
  vi.useFakeTimers({ toFake: ['Date'] })
  onTestFinished(() => void vi.useRealTimers())
}

test('one sweep clears all ended jobs of a removed cluster, many times what one transaction holds', async () => {
  const clusterId = await removedCluster(await callerOf(), 260)
  expect(await jobsLeft(clusterId)).toBe(260)
  stopClock()
  await sweep()
  expect(await jobsLeft(clusterId)).toBe(0)
})

test('a job that is overdue has ended before anything is cleared', async () => {
  const caller = await callerOf()
  const jobId = await waitingJob(caller, await enrolledCluster(caller), {}, { deliverWithinSeconds: 60 })
  const clusterId = await removedCluster(caller, 3)
  shiftClock(61_000)
  const seen: string[] = []
  using _ = atStoreCalls({
    before: async (call) => {
      if (looksForJobs(call, [clusterId])) seen.push((await Job.read(caller, jobId)).status)
    },
  })
  await sweep()
  expect(seen).toEqual(['Failed'])
})

test('clearing stops when a sweep has spent its time, and goes on with the cluster that has waited longest', async () => {
  const caller = await callerOf()
  const clusterIds: string[] = []
  for (let count = 0; count < 4; count++) {
    clusterIds.push(await removedCluster(caller, 60))
    shiftClock(10)
  }
  stopClock()
  const left = async () => (await Promise.all(clusterIds.map(jobsLeft))).toSorted((a, b) => a - b)
  using _ = atStoreCalls({
    after: async (call) => {
      if (looksForJobs(call, clusterIds)) shiftClock(6000)
    },
  })
  await sweep()
  expect(await left()).toEqual([10, 10, 10, 60])
  shiftClock(2000)
  await sweep()
  expect(await left()).toEqual([0, 0, 10, 10])
})
