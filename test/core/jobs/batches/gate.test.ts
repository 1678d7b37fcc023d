import { beforeAll, expect, test } from 'vitest'
import { advanceClock } from '../../../support/clock.ts'
import * as Batch from '@platform/core/jobs/batches/batch'
import { type Caller } from '@platform/core/caller'
import * as Cluster from '@platform/core/clusters/cluster'
import * as keys from '@platform/core/db/keys'
import { client, get, remove } from '@platform/core/db/table'
import { transact } from '@platform/core/db/transact'
import * as Job from '@platform/core/jobs/job'
import { rounds } from '../../../support/long.ts'
import { newCaller, errorCodeOf, bootstrapPlatform, expectError } from '../../../support/fixtures.ts'
import { clusterCounters, jobsForClusters, storeClusters, jobRecords, advance } from '../../support/batches.ts'
import { scriptJob } from '../../support/jobs.ts'

beforeAll(bootstrapPlatform)

const registered = async (caller: Caller, count: number): Promise<string[]> => {
  const ids: string[] = []
  for (let index = 0; index < count; index++) {
    ids.push((await Cluster.register(caller, { name: `cluster ${index}`, type: 'Hypervisor' })).id)
  }
  return ids
}

const openBatches = async ({ organisationId }: Caller) => {
  const item = await get(keys.removalGuard(organisationId))
  return [...((item?.['open'] as Set<string> | undefined) ?? [])]
}

test('from the 202 on a cluster stays until the jobs of the batch have ended, expanded or not', async () => {
  const caller = await newCaller()
  const [first = '', second = '', other = ''] = await registered(caller, 3)
  const { batchId, jobIds } = await Batch.submit(caller, { jobs: jobsForClusters([first, second]) })
  expect(await openBatches(caller)).toEqual([batchId])
  for (const id of [first, second]) await expectError(Cluster.remove(caller, id), 'cluster_has_active_jobs')
  await Cluster.remove(caller, other)
  await advance(caller, batchId)
  expect(await openBatches(caller)).toEqual([])
  for (const id of [first, second]) await expectError(Cluster.remove(caller, id), 'cluster_has_active_jobs')
  for (const id of jobIds) await Job.cancel(caller, id)
  for (const id of [first, second]) await Cluster.remove(caller, id)
})

test('a cancelled batch frees its clusters without any relay', async () => {
  const caller = await newCaller()
  const clusters = await registered(caller, 2)
  const { batchId } = await Batch.submit(caller, { jobs: jobsForClusters(clusters, 100) })
  await Batch.cancel(caller, batchId)
  await advance(caller, batchId)
  for (const id of clusters) await Cluster.remove(caller, id)
})

test('accepting and removing at the same moment leave either the batch or no cluster', async () => {
  const outcomes = new Set<string>()
  for (let round = 0; round < rounds(12, 40); round++) {
    const caller = await newCaller()
    const clusters = await registered(caller, 3)
    const contested = clusters[round % 3] ?? ''
    const accepting = () => errorCodeOf(Batch.submit(caller, { jobs: jobsForClusters(clusters) }))
    const removing = () => errorCodeOf(Cluster.remove(caller, contested))
    const [accepted, removed] =
      round % 2 === 0
        ? await Promise.all([accepting(), removing()])
        : await Promise.all([removing(), accepting()]).then(([second, first]) => [first, second])
    outcomes.add(`${accepted} / ${removed}`)
  }
  const either = new Set(['no error / cluster_has_active_jobs', 'cluster_forbidden / no error'])
  expect([...outcomes].filter((outcome) => !either.has(outcome))).toEqual([])
})

/** Holds calls of the store back until something has happened. */
async function holding<Result>(
  isHeld: (input: string) => boolean,
  until: Promise<unknown>,
  work: () => Promise<Result>,
) {
  const hold = (next: any) => async (args: any) => {
    if (isHeld(JSON.stringify(args.input))) await until
    return next(args)
  }
  client.middlewareStack.add(hold, { step: 'initialize', name: 'hold' })
  return work().finally(() => client.middlewareStack.remove('hold'))
}

const storesBatch = (input: string) => input.includes('CHUNK#')
const removesCluster = (input: string) => input.includes('TransactItems') && input.includes('lastRemovalAtMs')

test('a cluster that goes between the reads of an acceptance is never part of the batch', async () => {
  const caller = await newCaller()
  const [contested = ''] = await registered(caller, 1)
  const clusters = [...(await storeClusters(caller, 150)), contested]
  const gone = Promise.withResolvers<void>()
  // The cluster is read first; then it goes; then the gate is read.
  const readsGate = (input: string) => input.includes('REMOVAL-GUARD') && input.includes(clusters[1] ?? '')
  await holding(readsGate, gone.promise, async () => {
    const accepting = errorCodeOf(Batch.submit(caller, { jobs: jobsForClusters(clusters) }))
    await Cluster.remove(caller, contested)
    gone.resolve()
    expect(await accepting).toBe('cluster_forbidden')
  })
  expect(await openBatches(caller)).toEqual([])
})

test('a cluster that goes when all reads of an acceptance are done is not part of the batch either', async () => {
  const caller = await newCaller()
  const clusters = await registered(caller, 3)
  const gone = Promise.withResolvers<void>()
  await holding(storesBatch, gone.promise, async () => {
    const accepting = errorCodeOf(Batch.submit(caller, { jobs: jobsForClusters(clusters) }))
    await Cluster.remove(caller, clusters[2] ?? '')
    gone.resolve()
    expect(await accepting).toBe('cluster_forbidden')
  })
  expect(await openBatches(caller)).toEqual([])
})

test('a removal that has seen no batch is refused where one is accepted meanwhile', async () => {
  const caller = await newCaller()
  const clusters = await registered(caller, 3)
  const accepted = Promise.withResolvers<void>()
  await holding(removesCluster, accepted.promise, async () => {
    const removing = errorCodeOf(Cluster.remove(caller, clusters[2] ?? ''))
    await Batch.submit(caller, { jobs: jobsForClusters(clusters) })
    accepted.resolve()
    expect(await removing).toBe('cluster_has_active_jobs')
  })
})

test('after a cluster has gone, batches for the others are accepted as before', async () => {
  const caller = await newCaller()
  const [first = '', second = ''] = await registered(caller, 2)
  await Cluster.remove(caller, second)
  await expectError(Batch.submit(caller, { jobs: jobsForClusters([first, second]) }), 'cluster_forbidden')
  await Batch.submit(caller, { jobs: [scriptJob(first)] })
  advanceClock(120_000)
  await Batch.submit(caller, { jobs: [scriptJob(first)] })
  expect(await openBatches(caller)).toHaveLength(2)
})

test('many batches at once, with clusters going meanwhile, all count exactly', async () => {
  const caller = await newCaller()
  const clusters = await registered(caller, 6)
  const [kept, going] = [clusters.slice(0, 3), clusters.slice(3)]
  const submissions = Array.from({ length: 12 }, (_, index) =>
    Batch.submit(caller, { jobs: jobsForClusters(index % 4 === 3 ? clusters : kept, 6) }).then(
      ({ batchId, jobIds }) => ({ batchId, jobIds }),
      (error: { code: string }) => error.code,
    ),
  )
  const removals = going.map((id) => errorCodeOf(Cluster.remove(caller, id)))
  const [submitted, removed] = [await Promise.all(submissions), await Promise.all(removals)]
  const accepted = submitted.filter((outcome) => typeof outcome !== 'string')
  expect(submitted.filter((outcome) => outcome !== 'cluster_forbidden')).toEqual(accepted)
  expect(accepted.length).toBeGreaterThanOrEqual(9)
  expect((await openBatches(caller)).toSorted()).toEqual(accepted.map(({ batchId }) => batchId).toSorted())
  await Promise.all(accepted.map(({ batchId }) => advance(caller, batchId)))
  const rows = await jobRecords(
    caller,
    accepted.flatMap(({ jobIds }) => jobIds),
  )
  expect(rows.filter(({ status }) => status !== 'Queued')).toEqual([])
  const left = clusters.filter((_, index) => index < 3 || removed[index - 3] !== 'no error')
  const expected = left.map((id) => rows.filter(({ clusterId }) => clusterId === id).length)
  expect(await clusterCounters(caller, left)).toEqual(expected.map((count) => [count, count, count]))
  expect(rows.length).toBe(expected.reduce((sum, count) => sum + count, 0))
})

test('should a cluster be gone all the same, its jobs fail and the others run', async () => {
  const caller = await newCaller()
  const [gone = '', kept = ''] = await storeClusters(caller, 2)
  const accepted = await Batch.submit(caller, { jobs: jobsForClusters([gone, kept], 80) })
  await transact([remove(keys.cluster(caller.organisationId, gone))])
  await advance(caller, accepted.batchId)
  const rows = await jobRecords(caller, accepted.jobIds)
  const ends = rows.map(({ clusterId, status, statusReason }) => `${clusterId === gone} ${status} ${statusReason}`)
  expect(ends.filter((_, index) => index % 2 === 0)).toEqual(Array(40).fill('true Failed cluster_removed'))
  expect(ends.filter((_, index) => index % 2 === 1)).toEqual(Array(40).fill('false Queued undefined'))
  expect(await clusterCounters(caller, [kept])).toEqual([[40, 40, 40]])
})
