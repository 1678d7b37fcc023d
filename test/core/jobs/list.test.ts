import { beforeAll, describe, expect, test } from 'vitest'
import { advanceClock } from '../../support/clock.ts'
import { type JobStatus, jobStatuses } from '@platform/contract/job'
import * as Batch from '@platform/core/jobs/batches/batch'
import { type Caller } from '@platform/core/caller'
import * as Cluster from '@platform/core/clusters/cluster'
import * as keys from '@platform/core/db/keys'
import { get, batchPut, update } from '@platform/core/db/table'
import { newId } from '@platform/core/id'
import * as Job from '@platform/core/jobs/job'
import { chunk } from '@platform/core/lib/async'
import { type JobFilter, list } from '@platform/core/jobs/list'
import { claim } from '@platform/core/jobs/claim'
import { sweep } from '@platform/core/background/sweep'
import { newCaller, enrolledCluster, bootstrapPlatform, callerWithCluster } from '../../support/fixtures.ts'
import { runProjections, submitAndExpand, jobsForClusters, storeClusters } from '../support/batches.ts'
import { runJob, scriptJob, dispatchedJob, type EnrolledCluster } from '../support/jobs.ts'
import { measureUsage } from '../support/usage.ts'

beforeAll(bootstrapPlatform)

interface Known {
  id: string
  clusterId: string
  batchId: string | undefined
  status: JobStatus
}

/** Single jobs and jobs of batches, in every status, as they are known without any list. */
async function history(
  caller: Caller,
  enrolledClusters: readonly EnrolledCluster[],
): Promise<{ jobs: Known[]; batchIds: string[] }> {
  const clusters = enrolledClusters.map(({ cluster }) => cluster.id)
  const ids: { id: string; batchId: string | undefined; place: number }[] = []
  const batchIds: string[] = []
  for (let round = 0; round < 6; round++) {
    const place = round % enrolledClusters.length
    const enrolled = enrolledClusters[place]
    if (enrolled) ids.push({ id: await dispatchedJob(caller, enrolled), batchId: undefined, place })
    if (round % 2 === 1) continue
    const batch = await submitAndExpand(caller, { jobs: jobsForClusters(clusters, 7) })
    batchIds.push(batch.batchId)
    ids.push(
      ...batch.jobIds.map((id, index) => ({ id, batchId: batch.batchId, place: index % enrolledClusters.length })),
    )
  }
  const jobs: Known[] = []
  for (const [index, { id, batchId, place }] of ids.entries()) {
    const status = jobStatuses[index % jobStatuses.length] ?? 'Queued'
    const enrolled = enrolledClusters[place]
    if (enrolled) await bring(caller, enrolled, id, status)
    jobs.push({ id, batchId, clusterId: clusters[place] ?? '', status })
  }
  await runProjections(caller)
  return { jobs: jobs.toSorted((a, b) => (a.id < b.id ? 1 : -1)), batchIds }
}

async function bring(caller: Caller, enrolled: EnrolledCluster, jobId: string, status: JobStatus): Promise<void> {
  if (status === 'Running') await claim(enrolled.request(), jobId, undefined)
  if (status === 'Cancelled') await Job.cancel(caller, jobId)
  if (status === 'Completed') await runJob(enrolled, jobId)
  if (status === 'Failed') await runJob(enrolled, jobId, 1)
}

const sorts = { page: 1, pageSize: 100 }

describe('filters', async () => {
  await bootstrapPlatform()
  const caller = await newCaller()
  const enrolledClusters = [await enrolledCluster(caller), await enrolledCluster(caller), await enrolledCluster(caller)]
  const { jobs, batchIds } = await history(caller, enrolledClusters)
  const [foreign = ''] = await storeClusters(await newCaller(), 1)
  const neighbour = await newCaller()
  const theirs = await submitAndExpand(neighbour, { jobs: jobsForClusters(await storeClusters(neighbour, 1)) })

  const clusterIds = [undefined, ...enrolledClusters.map(({ cluster }) => cluster.id), foreign]
  const statuses = [undefined, ...jobStatuses]
  const batches = [undefined, batchIds[1], newId('batch'), theirs.batchId, '#']
  const types = [undefined, 'InvokeScript', 'ModuleInstall'] as const
  const filters: JobFilter[] = clusterIds.flatMap((clusterId) =>
    statuses.flatMap((status) =>
      batches.flatMap((batchId) => types.map((type) => ({ clusterId, status, batchId, type }))),
    ),
  )

  /** What a list shows that looks at everything. */
  const expected = ({ clusterId, status, batchId, type }: JobFilter): string[] =>
    jobs
      .filter((job) => (clusterId ?? job.clusterId) === job.clusterId && (status ?? job.status) === job.status)
      .filter(
        (job) => (batchId === undefined || batchId === job.batchId) && (type ?? 'InvokeScript') === 'InvokeScript',
      )
      .map(({ id }) => id)

  test('every combination of filters shows the jobs that it names, newest first, and counts them', async () => {
    for (const filter of filters) {
      const page = await list(caller, { ...filter, ...sorts })
      expect([filter, page.items.map(({ id }) => id), page.totalCount]).toEqual([
        filter,
        expected(filter),
        expected(filter).length,
      ])
    }
  })

  test('pages hold each job once, and an empty page follows the last one', async () => {
    for (const filter of filters.filter(({ type, batchId }) => type === undefined && batchId === undefined)) {
      const ids = expected(filter)
      const shown: string[] = []
      for (let page = 1; page <= Math.ceil(ids.length / 4) + 1; page++) {
        const { items, totalCount } = await list(caller, { ...filter, page, pageSize: 4 })
        expect([filter, totalCount]).toEqual([filter, ids.length])
        shown.push(...items.map(({ id }) => id))
      }
      expect(shown).toEqual(ids)
    }
  })

  test('a summary tells what the job itself tells', async () => {
    const { items } = await list(caller, sorts)
    for (const summary of items) expect(await Job.read(caller, summary.id)).toMatchObject(summary)
  })
})

test('the first page takes three calls in two rounds, whatever single filter it has', async () => {
  const { caller, enrolled } = await callerWithCluster()
  await submitAndExpand(caller, { jobs: jobsForClusters([enrolled.cluster.id], 60) })
  await runProjections(caller)
  for (const filter of [{}, { status: 'Queued' as const }, { clusterId: enrolled.cluster.id }]) {
    const { result, usage } = await measureUsage(() => list(caller, { ...filter, page: 1, pageSize: 20 }))
    expect([result.items.length, result.totalCount]).toEqual([20, 60])
    expect(usage.calls.toSorted()).toEqual(['BatchGetItem', 'GetItem', 'Query'])
  }
})

test('a page agrees with its count while the books are behind', async () => {
  const { caller, enrolled } = await callerWithCluster()
  const clusterId = enrolled.cluster.id
  for (let count = 0; count < 5; count++) await Job.submit(caller, scriptJob(clusterId))
  for (const filter of [{}, { status: 'Queued' as const }, { clusterId }]) {
    const pages = await Promise.all([1, 2, 3].map((page) => list(caller, { ...filter, page, pageSize: 3 })))
    expect(pages.map(({ items }) => items.length)).toEqual([3, 2, 0])
    expect(pages.slice(1).map(({ totalCount }) => totalCount)).toEqual([5, 5])
    expect((await list(caller, { ...filter, ...sorts })).totalCount).toBe(5)
  }
  await runProjections(caller)
  // Totals that tell too much, as they do after jobs were cleared away.
  await update(keys.jobTotals(caller.organisationId), { add: { total: 4, Queued: 4 } })
  expect((await list(caller, sorts)).totalCount).toBe(5)
  expect((await list(caller, { status: 'Queued', page: 2, pageSize: 3 })).totalCount).toBe(5)
})

test('deep pages of a long list are read from the nearer end', async () => {
  const caller = await newCaller()
  const { organisationId } = caller
  const [clusterId = ''] = await storeClusters(caller, 1)
  const count = 3000
  const ids = Array.from({ length: count }, (_, index) => newId('job', 1_700_000_000_000 + index))
  const common = {
    organisationId,
    clusterId,
    type: 'InvokeScript',
    status: 'Completed',
    timeoutSeconds: 1,
    createdBy: 'user',
  }
  const times = { createdAtMs: 1, expiresAtMs: 1 }
  const rows = ids.map((id) => ({
    ...keys.job(organisationId, id),
    id,
    ...common,
    ...times,
    ...keys.jobIndexKeys(common),
  }))
  // All at once are more connections than a busy machine makes in time.
  for (const part of chunk(rows, 250)) await batchPut(part)
  await update(keys.jobTotals(organisationId), { add: { total: count, Completed: count } })
  const newestFirst = ids.toReversed()
  for (const page of [1, 10, 11, 15, 20, 29, 30, 31]) {
    const { result, usage } = await measureUsage(() => list(caller, { page, pageSize: 100, status: 'Completed' }))
    expect([result.items.map(({ id }) => id), result.totalCount]).toEqual([
      newestFirst.slice((page - 1) * 100, page * 100),
      count,
    ])
    expect(usage.calls.length).toBeLessThanOrEqual(3)
    expect(usage.readUnits).toBeLessThan(100)
  }
})

test('jobs of a removed cluster leave lists and totals with their rows, and no other', async () => {
  const caller = await newCaller()
  const [gone, kept] = [await enrolledCluster(caller), await enrolledCluster(caller)]
  const { batchId, jobIds } = await submitAndExpand(caller, {
    jobs: jobsForClusters([gone.cluster.id, kept.cluster.id], 120),
  })
  for (const [index, id] of jobIds.entries()) {
    if (index % 2 === 0) await Job.cancel(caller, id)
  }
  await runProjections(caller)
  expect((await list(caller, { status: 'Cancelled', ...sorts })).totalCount).toBe(60)
  await Cluster.remove(caller, gone.cluster.id)
  for (let minute = 0; minute < 3; minute++) {
    await Promise.all([sweep(), sweep()])
    advanceClock(31_000)
  }
  await runProjections(caller)
  const { total, Queued, Cancelled } = (await get(keys.jobTotals(caller.organisationId))) ?? {}
  expect([total, Queued, Cancelled]).toEqual([60, 60, 0])
  expect(await list(caller, { status: 'Cancelled', ...sorts })).toMatchObject({ items: [], totalCount: 0 })
  expect((await list(caller, sorts)).totalCount).toBe(60)
  expect((await list(caller, { batchId, ...sorts })).totalCount).toBe(60)
  expect((await Batch.read(caller, batchId)).counts).toMatchObject({ queued: 60, cancelled: 60 })
})
