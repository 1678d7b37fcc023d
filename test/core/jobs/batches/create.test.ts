import { execFile } from 'node:child_process'
import { randomBytes } from 'node:crypto'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import type { Caller } from '@platform/core/caller'
import * as Cluster from '@platform/core/clusters/cluster'
import { parseRemovalGuard } from '@platform/core/clusters/removal-guard'
import * as keys from '@platform/core/db/keys'
import { get, query, remove, replace } from '@platform/core/db/table'
import { transact } from '@platform/core/db/transact'
import { isId, newId, timeMsOf } from '@platform/core/id'
import * as Batch from '@platform/core/jobs/batches/batch'
import { batchIdOf, jobIndexOf, jobIdOf, newBatchId } from '@platform/core/jobs/batches/id'
import { claim } from '@platform/core/jobs/claim'
import { complete } from '@platform/core/jobs/complete'
import * as Job from '@platform/core/jobs/job'
import { list } from '@platform/core/jobs/list'
import { readOutput } from '@platform/core/jobs/output'
import { recordStartsAndEnds } from '@platform/core/jobs/recording'
import { heartbeat } from '@platform/core/relays/heartbeat'
import { beforeAll, expect, test } from 'vitest'
import { advanceClock } from '../../../support/clock.ts'
import {
  bootstrapPlatform,
  callerWithCluster,
  enrolledCluster,
  errorCodeOf,
  expectError,
  newCaller,
} from '../../../support/fixtures.ts'
import { rounds } from '../../../support/long.ts'
import { beforeCommand, onStoreCall } from '../../../support/store-calls.ts'
import {
  advance,
  readClusterCounters,
  readJobRecords,
  jobsForClusters,
  runProjections,
  storeClusters,
  submitAndExpand,
} from '../../support/batches.ts'
import { completionReport, readInboxItems, runJob, scriptJob } from '../../support/jobs.ts'
import { readPendingRecords } from '../../support/outbox.ts'
import { measureUsage } from '../../support/usage.ts'

beforeAll(bootstrapPlatform)

const unknownCluster = 'clus_01jd8w5k3zr9x2m4c7t6v0b1qa'
const unknownNode = { payload: { script: 'x', targetNodeIds: ['node_x'] } }
const randomScript = () => `#!/bin/sh\n${randomBytes(700).toString('base64')}`

test('job ids are valid, sort in request order, and lead to their batch and index', () => {
  const indexes = Array.from({ length: 500 }, (_, index) => index)
  for (let round = 0; round < 50; round++) {
    const batchId = newBatchId()
    const jobIds = indexes.map((index) => jobIdOf(batchId, index))
    expect(isId('batch', batchId)).toBe(true)
    expect(jobIds.every((id) => isId('job', id) && timeMsOf(id) === timeMsOf(batchId))).toBe(true)
    expect([...new Set(jobIds)].toSorted()).toEqual(jobIds)
    expect(jobIds.map(batchIdOf)).toEqual(jobIds.map(() => batchId))
    expect(jobIds.map(jobIndexOf)).toEqual(indexes)
  }
  for (let round = 0; round < 1000; round++) expect(isId('batch', batchIdOf(newId('job')))).toBe(true)
})

test('500 jobs of 500 clusters take seven calls in three rounds and at most 75 write units', async () => {
  const caller = await newCaller()
  const jobs = jobsForClusters(await storeClusters(caller, 500), 500, { script: randomScript() })
  const { result, usage } = await measureUsage(() => Batch.submit(caller, { jobs }))
  expect(result.jobIds).toHaveLength(500)
  expect(usage.calls.toSorted()).toEqual([...Array(5).fill('BatchGetItem'), 'SendMessage', 'TransactWriteItems'])
  expect(usage.rounds).toBe(3)
  expect(usage.writeUnits).toBeGreaterThan(10)
  expect(usage.writeUnits).toBeLessThanOrEqual(75)
})

test('rejects 501 jobs before it validates them, without a call', async () => {
  const caller = await newCaller()
  const submission = { jobs: Array(501).fill('no job') }
  const { result, usage } = await measureUsage(() => errorCodeOf(Batch.submit(caller, submission)))
  expect([result, usage.calls]).toEqual(['batch_limit_exceeded', []])
})

const manyTargets = { payload: { script: 'x', targetNodeIds: Array<string>(5000).fill('x'.repeat(40)) } }
test.each([
  ['an unknown type', { type: 'Nope' }, 'unknown_job_type'],
  ['an operation type', { type: 'PlatformUpdate' }, 'job_type_not_submittable'],
  ['a script above the limit', { payload: { script: 'ä'.repeat(131_073) } }, 'validation_failed'],
  ['a payload above the limit', manyTargets, 'payload_too_large'],
  ['an unknown node', unknownNode, 'node_not_in_cluster'],
  ['an unknown cluster and node', { clusterId: unknownCluster, ...unknownNode }, 'cluster_forbidden'],
])('rejects the whole batch for one job with %s', async (_, change, code) => {
  const caller = await newCaller()
  const { cluster } = await enrolledCluster(caller)
  const outbox = () => readPendingRecords(caller.organisationId)
  const records = await outbox()
  const jobs = [scriptJob(cluster.id), { ...scriptJob(cluster.id), ...change }, scriptJob(cluster.id)]
  await expectError(Batch.submit(caller, { jobs }), code)
  expect(await outbox()).toEqual(records)
  expect(await get(keys.removalGuard(caller.organisationId))).toBeUndefined()
  expect((await Batch.list(caller, { page: 1, pageSize: 20 })).totalCount).toBe(0)
})

test('accepts only target nodes in the cluster of the job', async () => {
  const caller = await newCaller()
  const clusters = [await enrolledCluster(caller), await enrolledCluster(caller, ['a', 'b'])]
  const nodeIds = clusters.map(({ relay }) => relay.nodes.map(({ id }) => id))
  const jobOf = (cluster: number, nodes: number) =>
    scriptJob(clusters[cluster]?.cluster.id ?? '', { targetNodeIds: nodeIds[nodes] })
  await expectError(Batch.submit(caller, { jobs: [jobOf(0, 0), jobOf(0, 1)] }), 'node_not_in_cluster')
  const { jobIds } = await Batch.submit(caller, { jobs: [jobOf(0, 0), jobOf(1, 1)] })
  const { payload } = await Job.read(caller, jobIds[1] ?? '')
  expect(payload).toEqual({ script: 'echo hello', targetNodeIds: nodeIds[1] })
})

test('jobs are readable and listed before they are stored', async () => {
  const caller = await newCaller()
  const clusterIds = await storeClusters(caller, 3)
  const clusterOf = (index: number) => clusterIds[index % 3] ?? ''
  const jobs = Array.from({ length: 500 }, (_, index) => scriptJob(clusterOf(index), { script: `echo ${index}` }))
  const { batchId, jobIds, createdAt } = await Batch.submit(caller, { jobs })
  for (const index of [0, 1, 255, 499]) {
    const id = jobIds[index] ?? ''
    const job = await Job.read(caller, id)
    expect(job).toMatchObject({ id, batchId, clusterId: clusterOf(index), status: 'Queued', createdAt })
    expect(job.payload).toEqual({ script: `echo ${index}` })
    const noOutput = { items: [], nextOffset: 0, status: 'Queued', finished: false }
    expect(await readOutput(caller, id, 0)).toEqual(noOutput)
  }
  expect(await readJobRecords(caller, jobIds)).toEqual([])
  const { items, totalCount } = await list(caller, { batchId, page: 3, pageSize: 100 })
  expect(totalCount).toBe(500)
  expect(items.map(({ id }) => id)).toEqual(jobIds.toReversed().slice(200, 300))
  expect((await list(caller, { batchId, clusterId: clusterOf(0), page: 1, pageSize: 1 })).totalCount).toBe(167)
  const batch = { status: 'Running', submittedCount: 500, counts: { queued: 500 } }
  expect(await Batch.read(caller, batchId)).toMatchObject(batch)
})

test('a job id after the last one of a batch is unknown, before and after expansion', async () => {
  const caller = await newCaller()
  const [clusterId = ''] = await storeClusters(caller, 1)
  for (const submit of [Batch.submit, submitAndExpand]) {
    const { jobIds } = await submit(caller, { jobs: [scriptJob(clusterId)] })
    await expectError(Job.read(caller, (jobIds[0] ?? '').slice(0, -1) + '1'), 'job_not_found')
  }
})

test('stores payloads of all sizes up to 4 MB in total', async () => {
  const caller = await newCaller()
  const clusterIds = await storeClusters(caller, 2)
  const middle = Array.from({ length: 128 }, (_, index) => (index % 2 === 0 ? 12_000 : 34_000))
  const scripts = [190_000, 1, ...middle, 190_000, 3].map((size) => randomBytes(size).toString('base64'))
  const jobs = scripts.map((script, index) => scriptJob(clusterIds[index % 2] ?? '', { script }))
  expect(Buffer.byteLength(JSON.stringify(jobs))).toBeGreaterThan(4_100_000)
  const { batchId, jobIds } = await Batch.submit(caller, { jobs })
  const scriptOf = async (id: string) => (await Job.read(caller, id)).payload['script']
  for (const index of [0, 1, 2, 3, 64, 129, 130, 131]) expect(await scriptOf(jobIds[index] ?? '')).toBe(scripts[index])
  await advance(caller, batchId)
  expect(await Promise.all(jobIds.map(scriptOf))).toEqual(scripts)
})

const worker = fileURLToPath(new URL('../../support/advance-batch.ts', import.meta.url))

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
  const records = await readJobRecords(caller, jobIds)
  expect(records.map(({ id }) => id)).toEqual(jobIds)
  for (const record of records) expect(record).toMatchObject({ status: 'Queued', batchId })
  expect((await Promise.all(clusterIds.map(readInboxItems))).flat().toSorted()).toEqual(jobIds)
  const counts = clusterIds.map((id) => records.filter(({ clusterId }) => clusterId === id).length)
  expect(await readClusterCounters(caller, clusterIds)).toEqual(counts.map((count) => [count, count, count]))
  const { items } = await query({ pk: keys.batch(caller.organisationId, batchId).pk, to: 'JOB' })
  expect(items.map(({ sk }) => sk)).toEqual(['BATCH'])
  await runProjections(caller)
  expect(await get(keys.organisationCounts(caller.organisationId))).toMatchObject({ total: 500, Queued: 500 })
})

test('an expansion killed after any transaction continues there', async () => {
  const caller = await newCaller()
  const clusterIds = await storeClusters(caller, 60)
  const { batchId, jobIds } = await Batch.submit(caller, { jobs: jobsForClusters(clusterIds, 240) })
  let kills = 0
  while (await isKilled(caller, batchId, 'batch.expanding=kill')) {
    kills++
    expect((await list(caller, { batchId, page: 1, pageSize: 100 })).totalCount).toBe(240)
    for (const id of jobIds.filter((_, index) => index % 45 === 0)) {
      expect(await Job.read(caller, id)).toMatchObject({ id, status: 'Queued' })
    }
    if (kills === 5) break
  }
  expect(kills).toBe(5)
  expect(await isKilled(caller, batchId, 'batch.expanded=kill')).toBe(true)
  await advance(caller, batchId)
  expect((await readJobRecords(caller, jobIds)).map(({ id }) => id)).toEqual(jobIds)
  expect(await readClusterCounters(caller, clusterIds)).toEqual(clusterIds.map(() => [4, 4, 4]))
  await runProjections(caller)
  expect(await get(keys.organisationCounts(caller.organisationId))).toMatchObject({ total: 240, Queued: 240 })
  expect((await Batch.read(caller, batchId)).counts).toMatchObject({ queued: 240 })
})

async function batchWithUnstoredJobs() {
  const { caller, enrolled } = await callerWithCluster()
  const clusterIds = [enrolled.cluster.id, ...(await storeClusters(caller, 2))]
  const { batchId, jobIds } = await Batch.submit(caller, { jobs: jobsForClusters(clusterIds) })
  expect(await isKilled(caller, batchId, 'batch.listed=kill')).toBe(true)
  expect(await readJobRecords(caller, jobIds)).toEqual([])
  const claimAll = async () =>
    (await heartbeat(enrolled.request(), { ...enrolled.heartbeat, claimKey: 'claim-key' })).claims ?? []
  return { caller, clusterIds, enrolled, batchId, jobIds, claimAll }
}

test('jobs that are listed but not stored are readable and can be cancelled; their relay waits for the records', async () => {
  const { caller, clusterIds, batchId, jobIds, claimAll } = await batchWithUnstoredJobs()
  expect(await readClusterCounters(caller, clusterIds)).toEqual(clusterIds.map(() => [1, 1, 1]))
  for (const id of jobIds) expect(await Job.read(caller, id)).toMatchObject({ id, status: 'Queued' })
  expect((await list(caller, { batchId, page: 1, pageSize: 9 })).items.map(({ id }) => id)).toEqual(jobIds.toReversed())
  expect(await claimAll()).toEqual([])
  expect(await Job.cancel(caller, jobIds[1]!)).toMatchObject({ status: 'Cancelled' })
  const records = await readJobRecords(caller, jobIds)
  expect(records.map(({ id, status }) => [id, status])).toEqual([
    [jobIds[0], 'Queued'],
    [jobIds[1], 'Cancelled'],
    [jobIds[2], 'Queued'],
  ])
  expect((await claimAll()).map(({ jobId }) => jobId)).toEqual(jobIds.slice(0, 1))
  expect(await get(keys.batch(caller.organisationId, batchId))).not.toHaveProperty('unstoredFrom')
  expect(await readClusterCounters(caller, clusterIds)).toEqual([
    [1, 1, 1],
    [0, 0, 1],
    [1, 1, 1],
  ])
})

test('the cancellation of a batch whose jobs are listed but not stored ends all of them', async () => {
  const { caller, clusterIds, batchId, jobIds } = await batchWithUnstoredJobs()
  await Batch.cancel(caller, batchId)
  await advance(caller, batchId)
  expect((await readJobRecords(caller, jobIds)).map(({ status }) => status)).toEqual(jobIds.map(() => 'Cancelled'))
  expect(await readClusterCounters(caller, clusterIds)).toEqual(clusterIds.map(() => [0, 0, 1]))
  await runProjections(caller)
  expect(await Batch.read(caller, batchId)).toMatchObject({ status: 'Finished', counts: { cancelled: 3 } })
})

test('jobs of one transaction are stored in it unless all of them are listed', async () => {
  const caller = await newCaller()
  const clusterIds = await storeClusters(caller, 50)
  const [first = '', ...otherIds] = clusterIds
  // The jobs of the first cluster do not fit into its list.
  const jobs = [...jobsForClusters(otherIds), ...jobsForClusters([first], 4)]
  const { batchId, jobIds } = await Batch.submit(caller, { jobs })
  expect(await isKilled(caller, batchId, 'batch.expanded=kill')).toBe(true)
  expect(await get(keys.batch(caller.organisationId, batchId))).not.toHaveProperty('unstoredFrom')
  const records = await readJobRecords(caller, jobIds)
  expect(records.map(({ isListed = false }) => isListed)).toEqual(jobs.map(({ clusterId }) => clusterId !== first))
  expect(await readInboxItems(first)).toEqual(jobIds.slice(-4))
})

test('a delayed expansion does not change the record of a job that has run', async () => {
  const { caller, enrolled, batchId, jobIds, claimAll } = await batchWithUnstoredJobs()
  const jobId = jobIds[0]!
  const run = async () => {
    await advance(caller, batchId)
    const [job] = await claimAll()
    await complete(enrolled.request(), jobId, completionReport(enrolled, job!.leaseId))
  }
  const isReached = beforeCommand(/^UpdateItem/, run)
  await advance(caller, batchId)
  expect(isReached()).toBe(true)
  expect(await Job.read(caller, jobId)).toMatchObject({ status: 'Completed' })
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
  expect(await readPendingRecords(caller.organisationId)).toEqual([])
})

test('a late projection of a start does not finish the batch again', async () => {
  const { caller, enrolled } = await callerWithCluster()
  const { batchId, jobIds } = await submitAndExpand(caller, { jobs: jobsForClusters([enrolled.cluster.id], 2) })
  await runProjections(caller)
  for (const id of jobIds) {
    const { leaseId } = await claim(enrolled.request(), id, undefined)
    await recordStartsAndEnds(caller.organisationId, [id])
    await complete(enrolled.request(), id, completionReport(enrolled, leaseId))
  }

  const records = await readPendingRecords(caller.organisationId)
  const startRecord = records.find(({ events }) => events[0]?.name === 'job.started')
  const key = keys.outbox(caller.organisationId, startRecord?.id ?? '')
  const { pk: _, sk: __, ...attributes } = (await get(key)) ?? {}
  await transact([remove(key)])
  await runProjections(caller)
  const finishedBatch = await Batch.read(caller, batchId)
  expect(finishedBatch).toMatchObject({ status: 'Finished', counts: { running: 0, completed: 2 } })

  advanceClock(1000)
  await transact([replace(key, attributes)])
  await runProjections(caller)
  expect(await Batch.read(caller, batchId)).toEqual(finishedBatch)
})

test('has no output of a job that is not stored yet', async () => {
  const { caller, enrolled } = await callerWithCluster()
  const { batchId, jobIds } = await Batch.submit(caller, { jobs: [scriptJob(enrolled.cluster.id)] })
  const [jobId = ''] = jobIds
  expect(await readOutput(caller, jobId, 0)).toMatchObject({ items: [], status: 'Queued', finished: false })
  await advance(caller, batchId)
  await runJob(enrolled, jobId)
  expect(await readOutput(caller, jobId, 0)).toMatchObject({ items: [], status: 'Completed', finished: true })
})

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
  const [first = '', second = '', unusedId = ''] = clusterIds
  const expectProtected = async () => {
    for (const id of [first, second]) await expectError(Cluster.remove(caller, id), 'cluster_has_active_jobs')
  }
  const { batchId, jobIds } = await Batch.submit(caller, { jobs: jobsForClusters([first, second]) })
  expect(await openBatches(caller)).toEqual([batchId])
  await expectProtected()
  await Cluster.remove(caller, unusedId)
  await advance(caller, batchId)
  expect(await openBatches(caller)).toEqual([])
  await expectProtected()
  for (const id of jobIds) await Job.cancel(caller, id)
  for (const id of [first, second]) await Cluster.remove(caller, id)
})

test('of a batch submission and a concurrent cluster removal, exactly one succeeds', async () => {
  for (let round = 0; round < rounds(12, 40); round++) {
    const { caller, clusterIds } = await callerWithClusters(3)
    const accept = () => errorCodeOf(Batch.submit(caller, { jobs: jobsForClusters(clusterIds) }))
    const removeOne = () => errorCodeOf(Cluster.remove(caller, clusterIds[round % 3] ?? ''))
    const calls = round % 2 === 0 ? [accept(), removeOne()] : [removeOne(), accept()].toReversed()
    const codes = (await Promise.all(calls)).join()
    expect(['no error,cluster_has_active_jobs', 'cluster_forbidden,no error']).toContain(codes)
  }
})

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
  const [contestedId = ''] = clusterIds
  const allIds = [...(await storeClusters(caller, 150)), contestedId]
  // Delays only the `BatchGetItem` call that reads the guard. The other call runs before the removal and still finds
  // the cluster.
  const readsGuard = (input: string) => input.includes('REMOVAL-GUARD') && input.includes(allIds[1] ?? '')
  const accept = () => errorCodeOf(Batch.submit(caller, { jobs: jobsForClusters(allIds) }))
  expect(await delayCalls(readsGuard, accept, () => Cluster.remove(caller, contestedId))).toBe('cluster_forbidden')
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
  const [missingId = '', keptId = ''] = await storeClusters(caller, 2)
  const { batchId, jobIds } = await Batch.submit(caller, { jobs: jobsForClusters([missingId, keptId], 80) })
  await transact([remove(keys.cluster(caller.organisationId, missingId))])
  await advance(caller, batchId)
  for (const { clusterId, status, statusReason } of await readJobRecords(caller, jobIds)) {
    const expected = clusterId === missingId ? ['Failed', 'cluster_removed'] : ['Queued', undefined]
    expect([status, statusReason]).toEqual(expected)
  }
  expect(await readClusterCounters(caller, [keptId])).toEqual([[40, 40, 40]])
})
