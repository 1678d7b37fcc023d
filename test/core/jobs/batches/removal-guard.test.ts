import type { Caller } from '@platform/core/caller'
import * as Cluster from '@platform/core/clusters/cluster'
import { parseRemovalGuard } from '@platform/core/clusters/removal-guard'
import * as keys from '@platform/core/db/keys'
import { get, remove } from '@platform/core/db/table'
import { transact } from '@platform/core/db/transact'
import * as Batch from '@platform/core/jobs/batches/batch'
import * as Job from '@platform/core/jobs/job'
import { beforeAll, expect, test } from 'vitest'
import { advanceClock } from '../../../support/clock.ts'
import { bootstrapPlatform, errorCodeOf, expectError, newCaller } from '../../../support/fixtures.ts'
import { rounds } from '../../../support/long.ts'
import { onStoreCall } from '../../../support/store-calls.ts'
import { advance, clusterCounters, jobRecords, jobsForClusters, storeClusters } from '../../support/batches.ts'
import { scriptJob } from '../../support/jobs.ts'

beforeAll(bootstrapPlatform)

async function callerWithClusters(count: number) {
  const caller = await newCaller()
  const clusterIds: string[] = []
  for (let index = 0; index < count; index++) {
    clusterIds.push((await Cluster.register(caller, { name: `cluster ${index}`, type: 'Hypervisor' })).id)
  }
  return { caller, clusterIds }
}

const openBatches = async ({ organisationId }: Caller) =>
  [...parseRemovalGuard(await get(keys.removalGuard(organisationId))).open].toSorted()

test('a cluster cannot be removed from the acceptance of a batch until its jobs end', async () => {
  const { caller, clusterIds } = await callerWithClusters(3)
  const [first = '', second = '', unused = ''] = clusterIds
  const expectProtected = async () => {
    for (const id of [first, second]) await expectError(Cluster.remove(caller, id), 'cluster_has_active_jobs')
  }
  const { batchId, jobIds } = await Batch.submit(caller, { jobs: jobsForClusters([first, second]) })
  expect(await openBatches(caller)).toEqual([batchId])
  await expectProtected()
  await Cluster.remove(caller, unused)
  await advance(caller, batchId)
  expect(await openBatches(caller)).toEqual([])
  await expectProtected()
  for (const id of jobIds) await Job.cancel(caller, id)
  for (const id of [first, second]) await Cluster.remove(caller, id)
})

test('concurrent acceptance and removal leave either the batch or no cluster', async () => {
  for (let round = 0; round < rounds(12, 40); round++) {
    const { caller, clusterIds } = await callerWithClusters(3)
    const accept = () => errorCodeOf(Batch.submit(caller, { jobs: jobsForClusters(clusterIds) }))
    const removeOne = () => errorCodeOf(Cluster.remove(caller, clusterIds[round % 3] ?? ''))
    const calls = round % 2 === 0 ? [accept(), removeOne()] : [removeOne(), accept()].toReversed()
    const codes = (await Promise.all(calls)).join()
    expect(['no error,cluster_has_active_jobs', 'cluster_forbidden,no error']).toContain(codes)
  }
})

/** Delays matching store calls of `work` until `change` is done. */
async function delayCalls<Result>(
  isDelayed: (input: string) => boolean,
  work: () => Promise<Result>,
  change: () => Promise<unknown>,
): Promise<Result> {
  const changed = Promise.withResolvers<void>()
  using _ = onStoreCall({
    before: async ({ input }) => {
      if (isDelayed(JSON.stringify(input))) await changed.promise
    },
  })
  const result = work()
  await change()
  changed.resolve()
  return result
}

test('rejects a batch whose cluster is removed between the reads of its lookup', async () => {
  const { caller, clusterIds } = await callerWithClusters(1)
  const [contested = ''] = clusterIds
  const allIds = [...(await storeClusters(caller, 150)), contested]
  // Another batch read returns the cluster before this one returns the guard.
  const readsGuard = (input: string) => input.includes('REMOVAL-GUARD') && input.includes(allIds[1] ?? '')
  const accept = () => errorCodeOf(Batch.submit(caller, { jobs: jobsForClusters(allIds) }))
  expect(await delayCalls(readsGuard, accept, () => Cluster.remove(caller, contested))).toBe('cluster_forbidden')
  expect(await openBatches(caller)).toEqual([])
})

test('rejects a batch whose cluster is removed after its lookup', async () => {
  const { caller, clusterIds } = await callerWithClusters(3)
  const storesBatch = (input: string) => input.includes('CHUNK#')
  const accept = () => errorCodeOf(Batch.submit(caller, { jobs: jobsForClusters(clusterIds) }))
  const removeLast = () => Cluster.remove(caller, clusterIds[2] ?? '')
  expect(await delayCalls(storesBatch, accept, removeLast)).toBe('cluster_forbidden')
  expect(await openBatches(caller)).toEqual([])
})

test('rejects a removal if a batch is accepted after its lookup', async () => {
  const { caller, clusterIds } = await callerWithClusters(3)
  const removesCluster = (input: string) => input.includes('TransactItems') && input.includes('lastRemovalAtMs')
  const removeLast = () => errorCodeOf(Cluster.remove(caller, clusterIds[2] ?? ''))
  const accept = () => Batch.submit(caller, { jobs: jobsForClusters(clusterIds) })
  expect(await delayCalls(removesCluster, removeLast, accept)).toBe('cluster_has_active_jobs')
})

test('accepts batches for the other clusters after a removal', async () => {
  const { caller, clusterIds } = await callerWithClusters(2)
  const [first = '', second = ''] = clusterIds
  await Cluster.remove(caller, second)
  await expectError(Batch.submit(caller, { jobs: jobsForClusters([first, second]) }), 'cluster_forbidden')
  await Batch.submit(caller, { jobs: [scriptJob(first)] })
  advanceClock(120_000)
  await Batch.submit(caller, { jobs: [scriptJob(first)] })
  expect(await openBatches(caller)).toHaveLength(2)
})

test('fails only the jobs of a cluster that is missing despite the guard', async () => {
  const caller = await newCaller()
  const [missing = '', kept = ''] = await storeClusters(caller, 2)
  const { batchId, jobIds } = await Batch.submit(caller, { jobs: jobsForClusters([missing, kept], 80) })
  await transact([remove(keys.cluster(caller.organisationId, missing))])
  await advance(caller, batchId)
  for (const { clusterId, status, statusReason } of await jobRecords(caller, jobIds)) {
    const expected = clusterId === missing ? ['Failed', 'cluster_removed'] : ['Queued', undefined]
    expect([status, statusReason]).toEqual(expected)
  }
  expect(await clusterCounters(caller, [kept])).toEqual([[40, 40, 40]])
})
