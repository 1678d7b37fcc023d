import { randomBytes } from 'node:crypto'
import { type JobStatus, jobStatuses, type jobTypes } from '@platform/contract/job'
import type { Caller } from '@platform/core/caller'
import * as keys from '@platform/core/db/keys'
import { indexedKeys } from '@platform/core/db/index-page'
import { batchPut, get, update } from '@platform/core/db/table'
import { newId } from '@platform/core/id'
import { claim } from '@platform/core/jobs/claim'
import * as Batch from '@platform/core/jobs/batches/batch'
import { expand } from '@platform/core/jobs/batches/expand'
import { jobIdOf } from '@platform/core/jobs/batches/id'
import * as Job from '@platform/core/jobs/job'
import { type JobFilter, list } from '@platform/core/jobs/list'
import { recordStartsAndEnds } from '@platform/core/jobs/recording'
import { chunk } from '@platform/core/lib/async'
import { operationTypes } from '@platform/core/operations/record'
import { beforeAll, describe, expect, test } from 'vitest'
import { bootstrapPlatform, callerWithCluster, enrolledCluster, newCaller } from '../../support/fixtures.ts'
import { jobsForClusters, runProjections, storeClusters, submitAndExpand } from '../support/batches.ts'
import { dispatchedJob, type EnrolledCluster, runJob, scriptJob } from '../support/jobs.ts'
import { claimed, finishOperation, pendingOperation } from '../support/operations.ts'
import { measureUsage } from '../support/usage.ts'

beforeAll(bootstrapPlatform)

const firstPage = { page: 1, pageSize: 100 }

interface ExpectedJob {
  id: string
  type: (typeof jobTypes)[number]
  clusterId: string | undefined
  batchId: string | undefined
  status: JobStatus
}

async function createOperation(caller: Caller, index: number): Promise<ExpectedJob> {
  const type = operationTypes[index % 2]!
  const status = (['Queued', 'Running', 'Completed', 'Failed'] as const)[index % 4]!
  const operation = await pendingOperation(caller, type)
  const worker = status === 'Queued' ? undefined : await claimed(operation)
  if (worker && (status === 'Completed' || status === 'Failed')) await finishOperation(worker, { status, outcome: '' })
  return { id: operation.id, type, clusterId: undefined, batchId: undefined, status }
}

async function createJobs(caller: Caller, clusters: readonly EnrolledCluster[]) {
  const clusterIds = clusters.map(({ cluster }) => cluster.id)
  const createdJobs: { id: string; batchId: string | undefined; enrolled: EnrolledCluster }[] = []
  const batchIds: string[] = []
  const jobs: ExpectedJob[] = []
  for (let round = 0; round < 6; round++) {
    jobs.push(await createOperation(caller, round))
    const enrolled = clusters[round % clusters.length]!
    createdJobs.push({ id: await dispatchedJob(caller, enrolled), batchId: undefined, enrolled })
    if (round % 2 === 1) continue
    const { batchId, jobIds } = await submitAndExpand(caller, { jobs: jobsForClusters(clusterIds, 7) })
    batchIds.push(batchId)
    createdJobs.push(...jobIds.map((id, index) => ({ id, batchId, enrolled: clusters[index % clusters.length]! })))
  }
  for (const [index, { id, batchId, enrolled }] of createdJobs.entries()) {
    const status = jobStatuses[index % jobStatuses.length]!
    await bringToStatus(caller, enrolled, id, status)
    jobs.push({ id, type: 'InvokeScript', clusterId: enrolled.cluster.id, batchId, status })
  }
  await runProjections(caller)
  return { jobs: jobs.toSorted((a, b) => (a.id < b.id ? 1 : -1)), batchIds }
}

async function bringToStatus(caller: Caller, enrolled: EnrolledCluster, jobId: string, status: JobStatus) {
  if (status === 'Running') {
    await claim(enrolled.request(), jobId, undefined)
    await recordStartsAndEnds(caller.organisationId, [jobId])
  }
  if (status === 'Cancelled') await Job.cancel(caller, jobId)
  if (status === 'Completed') await runJob(enrolled, jobId)
  if (status === 'Failed') await runJob(enrolled, jobId, 1)
}

describe('filters', async () => {
  await bootstrapPlatform()
  const caller = await newCaller()
  const clusters = [await enrolledCluster(caller), await enrolledCluster(caller), await enrolledCluster(caller)]
  const { jobs, batchIds } = await createJobs(caller, clusters)
  const otherTenant = await newCaller()
  const [foreignClusterId = ''] = await storeClusters(otherTenant, 1)
  const foreignBatch = await submitAndExpand(otherTenant, { jobs: jobsForClusters([foreignClusterId]) })

  const types = [undefined, 'InvokeScript', ...operationTypes.slice(0, 2)] as const
  const filters: JobFilter[] = [undefined, ...clusters.map(({ cluster }) => cluster.id), foreignClusterId].flatMap(
    (clusterId) =>
      [undefined, ...jobStatuses].flatMap((status) =>
        [undefined, batchIds[1], newId('batch'), foreignBatch.batchId, '#'].flatMap((batchId) =>
          types.map((type) => ({ clusterId, status, batchId, type })),
        ),
      ),
  )

  const filteredFields = ['clusterId', 'status', 'batchId', 'type'] as const
  const expectedIds = (filter: JobFilter): string[] =>
    jobs
      .filter((job) => filteredFields.every((field) => (filter[field] ?? job[field]) === job[field]))
      .map(({ id }) => id)

  test('lists and counts the matching scripts and operations for every combination of filters, newest first', async () => {
    for (const filter of filters) {
      const { items, totalCount } = await list(caller, { ...filter, ...firstPage })
      const ids = expectedIds(filter)
      expect([filter, items.map(({ id }) => id), totalCount]).toEqual([filter, ids, ids.length])
    }
  })

  test('pages contain each job once, and the page after the last is empty', async () => {
    for (const filter of filters.filter(({ batchId }) => batchId === undefined)) {
      const ids = expectedIds(filter)
      const listedIds: string[] = []
      for (let page = 1; page <= Math.ceil(ids.length / 4) + 1; page++) {
        const { items, totalCount } = await list(caller, { ...filter, page, pageSize: 4 })
        expect([filter, totalCount]).toEqual([filter, ids.length])
        listedIds.push(...items.map(({ id }) => id))
      }
      expect(listedIds).toEqual(ids)
    }
  })

  test('summaries match the jobs; operations have no cluster', async () => {
    const { items } = await list(caller, firstPage)
    for (const summary of items) {
      expect(await Job.read(caller, summary.id)).toMatchObject(summary)
      expect('clusterId' in summary).toBe(summary.type === 'InvokeScript')
    }
  })

  test('totals count operations both as jobs and separately', async () => {
    const count = (matches: (job: ExpectedJob) => boolean) => jobs.filter(matches).length
    expect(await get(keys.organisationCounts(caller.organisationId))).toMatchObject({
      total: jobs.length,
      'operations total': 6,
      Running: count(({ status }) => status === 'Running'),
      'operations Completed': count(({ type, status }) => type !== 'InvokeScript' && status === 'Completed'),
    })
  })

  test.each([
    [{}, 3],
    [{ type: 'ModuleInstall' as const }, 2],
    [{ type: 'ModuleInstall' as const, status: 'Completed' as const }, 2],
    [{ type: 'InvokeScript' as const }, 7],
  ])('lists a page of %j with at most %i calls', async (filter, limit) => {
    const { usage } = await measureUsage(() => list(caller, { ...filter, page: 1, pageSize: 20 }))
    expect(usage.calls.length).toBeLessThanOrEqual(limit)
  })
})

test('counts match the pages while the totals lag', async () => {
  const { caller, enrolled } = await callerWithCluster()
  const clusterId = enrolled.cluster.id
  for (let count = 0; count < 5; count++) await Job.submit(caller, scriptJob(clusterId))
  for (const filter of [{}, { status: 'Queued' as const }, { clusterId }, { type: 'InvokeScript' as const }]) {
    const pages = await Promise.all([1, 2, 3].map((page) => list(caller, { ...filter, page, pageSize: 3 })))
    expect(pages.map(({ items }) => items.length)).toEqual([3, 2, 0])
    expect(pages.slice(1).map(({ totalCount }) => totalCount)).toEqual([5, 5])
    expect((await list(caller, { ...filter, ...firstPage })).totalCount).toBe(5)
  }
  await runProjections(caller)
  // Totals that still count purged jobs.
  await update(keys.organisationCounts(caller.organisationId), { add: { total: 4, Queued: 4 } })
  expect((await list(caller, firstPage)).totalCount).toBe(5)
  expect((await list(caller, { status: 'Queued', page: 2, pageSize: 3 })).totalCount).toBe(5)
  await pendingOperation(caller)
  expect((await list(caller, { type: 'InvokeScript', page: 2, pageSize: 3 })).totalCount).toBe(5)
})

test('reads deep pages of a long list from the nearer end', async () => {
  const caller = await newCaller()
  const { organisationId } = caller
  const [clusterId = ''] = await storeClusters(caller, 1)
  const count = 3000
  const ids = Array.from({ length: count }, (_, index) => newId('job', 1_700_000_000_000 + index))
  const [type, status] = ['InvokeScript', 'Completed'] as const
  const job = { organisationId, clusterId, type, status, timeoutSeconds: 1, createdBy: 'u' }
  const attributes = { ...job, createdAtMs: 1, expiresAtMs: 1, ...keys.jobIndexKeys(job) }
  const items = ids.map((id) => ({ ...keys.job(organisationId, id), id, ...attributes }))
  // Limits the number of concurrent connections.
  for (const part of chunk(items, 250)) await batchPut(part)
  await update(keys.organisationCounts(organisationId), { add: { total: count, Completed: count } })
  const newestFirst = ids.toReversed()
  for (const page of [1, 10, 11, 15, 20, 29, 30, 31]) {
    const { result, usage } = await measureUsage(() => list(caller, { page, pageSize: 100, status: 'Completed' }))
    expect(result.items.map(({ id }) => id)).toEqual(newestFirst.slice((page - 1) * 100, page * 100))
    expect(result.totalCount).toBe(count)
    expect(usage.calls.length).toBeLessThanOrEqual(3)
    expect(usage.readUnits).toBeLessThan(100)
  }
})

describe('filters by submitter, name and time', async () => {
  await bootstrapPlatform()
  const ann = { ...(await newCaller()), username: 'Ann' }
  const { organisationId } = ann
  const bob = { ...(await newCaller(organisationId)), username: 'bob', tokenId: newId('tok') }
  const { cluster } = await enrolledCluster(ann)
  const submit = (caller: Caller, name?: string) =>
    Job.submit(caller, { ...scriptJob(cluster.id), ...(name && { name, reason: 'Ticket 1' }) })
  const firstJob = await submit(ann, 'Rotate LOGS')
  const secondJob = await submit(bob)
  const jobs = jobsForClusters([cluster.id], 2)
  const { jobIds } = await submitAndExpand(bob, { jobs, name: 'Nightly logs', reason: 'Ticket 2' })
  const batch = jobIds.toReversed()
  const lastJob = await submit(ann)
  const [a, b, z] = [firstJob.id, secondJob.id, lastJob.id]

  test.each([
    [{ createdBy: ann.userId }, [z, a]],
    [{ createdBy: 'ANN' }, [z, a]],
    [{ createdBy: 'bob', type: 'InvokeScript' as const }, [...batch, b]],
    [{ createdBy: 'an' }, []],
    [{ name: 'logs' }, [...batch, a]],
    [{ name: 'logs', createdBy: 'ann', clusterId: cluster.id, status: 'Queued' as const }, [a]],
    [{ name: 'logs', status: 'Failed' as const }, []],
    [{ name: '', status: 'Queued' as const }, [z, ...batch, b, a]],
    [{ since: secondJob.createdAt, until: lastJob.createdAt, status: 'Queued' as const }, [...batch, b]],
    [{ since: secondJob.createdAt }, [z, ...batch, b]],
    [{ until: secondJob.createdAt, clusterId: cluster.id }, [a]],
    [{ since: secondJob.createdAt, until: lastJob.createdAt, name: '' }, [...batch, b]],
    [{ since: '2999-01-01T00:00:00Z', until: '0001-01-01T00:00:00Z' }, []],
    [{ name: 'nightly', type: 'ModuleInstall' as const }, []],
  ])('%j', async (filter, ids) => {
    const { items, ...rest } = await list(ann, { ...filter, ...firstPage })
    expect(items.map(({ id }) => id)).toEqual(ids)
    expect(rest).toMatchObject({ totalCount: ids.length, searchedAll: true })
  })

  test('jobs show name, reason and submitter; a job of a batch has those of the batch, also after a retry', async () => {
    const createdBy = { id: bob.userId, username: 'bob', via: 'token' }
    expect(await Job.read(ann, a)).toMatchObject({
      name: 'Rotate LOGS',
      reason: 'Ticket 1',
      createdBy: { id: ann.userId, username: 'Ann', via: 'session' },
    })
    expect(await Job.read(ann, jobIds[1]!)).toMatchObject({ name: 'Nightly logs', reason: 'Ticket 2', createdBy })
    for (const id of jobIds) await Job.cancel(ann, id)
    await runProjections(ann)
    const retry = await Batch.retry(ann, (await Job.read(ann, jobIds[0]!)).batchId ?? '')
    const view = await Batch.read(ann, retry.batchId)
    expect(view).toMatchObject({ name: 'Nightly logs', reason: 'Ticket 2', createdBy: { id: ann.userId } })
    expect(await Job.read(ann, retry.jobIds[0]!)).toMatchObject({ name: 'Nightly logs', reason: 'Ticket 2' })
  })
})

test('lists active jobs of batches and other jobs, newest first, until their batches are finished', async () => {
  const caller = await newCaller()
  const clusters = [await enrolledCluster(caller), await enrolledCluster(caller)]
  const [first, second] = clusters.map(({ cluster }) => cluster.id)
  const single = async () => (await Job.submit(caller, scriptJob(first!))).id
  const batch = async () => (await submitAndExpand(caller, { jobs: jobsForClusters([first!, second!]) })).jobIds
  const [oldBatch, oldJob, newBatch, newJob] = [await batch(), await single(), await batch(), await single()]
  const newestFirst = [newJob, ...newBatch.toReversed(), oldJob, ...oldBatch.toReversed()]
  const queued = async (query: object = {}) => {
    const { items, nextCursor } = await list(caller, { ...firstPage, status: 'Queued', ...query })
    return { ids: items.map(({ id }) => id), nextCursor }
  }
  expect((await queued()).ids).toEqual(newestFirst)
  expect((await queued({ clusterId: second })).ids).toEqual([newBatch[1], oldBatch[1]])
  for (const filter of [{}, { name: '' }]) {
    const ids: string[] = []
    let cursor: string | undefined
    do {
      const page = await queued({ ...filter, pageSize: 2, cursor })
      ids.push(...page.ids)
      cursor = page.nextCursor
    } while (cursor !== undefined)
    expect(ids).toEqual(newestFirst)
  }
  for (const [index, id] of newBatch.entries()) await runJob(clusters[index]!, id)
  expect((await queued()).ids).toEqual([newJob, oldJob, ...oldBatch.toReversed()])
  await runProjections(caller)
  const unfinished = { index: 'gsi3', pk: keys.unfinishedBatchesOf(caller.organisationId) } as const
  expect((await indexedKeys(unfinished)).map(({ id }) => jobIdOf(id, 0))).toEqual([oldBatch[0]])
  expect((await list(caller, { ...firstPage, status: 'Completed' })).items.map(({ id }) => id)).toEqual(
    newBatch.toReversed(),
  )
})

/** Stores queued jobs of `clusterId` without a batch, one for each millisecond. */
async function storeQueued(
  organisationId: string,
  clusterId: string,
  count: number,
  fromMs: number,
): Promise<string[]> {
  const job = { organisationId, clusterId, type: 'InvokeScript' as const, status: 'Queued' as const }
  const fields = {
    ...job,
    timeoutSeconds: 1,
    createdAtMs: 1,
    expiresAtMs: 1,
    createdBy: 'u',
    ...keys.jobIndexKeys(job),
  }
  const ids = Array.from({ length: count }, (_, index) => newId('job', fromMs + index))
  for (const part of chunk(ids, 250))
    await batchPut(part.map((id) => ({ ...keys.job(organisationId, id), id, ...fields })))
  return ids.toReversed()
}

test('a search for active jobs considers a limited number, and its cursor continues after them', async () => {
  const caller = await newCaller()
  const [clusterId = ''] = await storeClusters(caller, 1)
  const olderIds = await storeQueued(caller.organisationId, clusterId, 202, Date.now() - 60_000)
  const { jobIds } = await submitAndExpand(caller, { jobs: jobsForClusters([clusterId], 4) })
  const newerIds = await storeQueued(caller.organisationId, clusterId, 998, Date.now() + 60_000)
  const newestFirst = [...newerIds, ...jobIds.toReversed(), ...olderIds]
  for (const filter of [{ createdBy: caller.userId }, { createdBy: 'u' }]) {
    const foundIds: string[] = []
    let cursor: string | undefined
    const searchedAll: (boolean | undefined)[] = []
    do {
      const page = await list(caller, { ...filter, status: 'Queued', page: 1, pageSize: 500, cursor })
      foundIds.push(...page.items.map(({ id }) => id))
      searchedAll.push(page.searchedAll)
      cursor = page.nextCursor
    } while (cursor !== undefined)
    expect(foundIds).toEqual(newestFirst.filter((id) => jobIds.includes(id) === (filter.createdBy !== 'u')))
    expect([searchedAll[0], searchedAll.at(-1)]).toEqual([false, true])
  }
})

test('a list of running jobs does not read batches without running jobs', async () => {
  const caller = await newCaller()
  const clusters = [await enrolledCluster(caller), await enrolledCluster(caller)]
  const clusterIds = clusters.map(({ cluster }) => cluster.id)
  for (let count = 0; count < 9; count++) await submitAndExpand(caller, { jobs: jobsForClusters(clusterIds) })
  const { jobIds } = await submitAndExpand(caller, { jobs: jobsForClusters(clusterIds) })
  await bringToStatus(caller, clusters[0]!, jobIds[0]!, 'Running')
  await runProjections(caller)
  for (const [filter, limit] of [[{}, 6] as const, [{ clusterId: clusterIds[0] }, 8] as const]) {
    const { result, usage } = await measureUsage(() => list(caller, { ...filter, ...firstPage, status: 'Running' }))
    expect(result.items.map(({ id }) => id)).toEqual([jobIds[0]])
    expect(usage.calls.length).toBeLessThanOrEqual(limit)
  }
})

test('lists jobs that ended at their creation by their status', async () => {
  const { caller, enrolled } = await callerWithCluster()
  const { batchId, jobIds } = await Batch.submit(caller, { jobs: jobsForClusters([enrolled.cluster.id]) })
  await Batch.cancel(caller, batchId)
  await expand(caller.organisationId, batchId)
  expect((await list(caller, { ...firstPage, status: 'Cancelled' })).items.map(({ id }) => id)).toEqual(jobIds)
  expect((await list(caller, { ...firstPage, status: 'Queued' })).items).toEqual([])
})

test('lists have the titles of scripts that are stored with the job, apart from it or in a batch, and find them', async () => {
  const { caller, enrolled } = await callerWithCluster()
  const largeScript = { script: `set -e\nls /large\n# ${randomBytes(9000).toString('hex')}` }
  await dispatchedJob(caller, enrolled)
  await dispatchedJob(caller, enrolled, largeScript)
  const jobs = [scriptJob(enrolled.cluster.id, largeScript), scriptJob(enrolled.cluster.id)]
  const { batchId, jobIds } = await Batch.submit(caller, { jobs })
  const listTitles = async (filter: JobFilter) => (await list(caller, { ...filter, ...firstPage })).items.map(titleOf)
  const titleOf = ({ title }: { title: string }) => title
  expect(await listTitles({ batchId })).toEqual(['echo hello', 'ls /large'])
  expect(titleOf(await Job.read(caller, jobIds[0]!))).toBe('ls /large')
  expect(titleOf(await Batch.read(caller, batchId))).toBe('2 scripts')
  await expand(caller.organisationId, batchId)
  expect(await listTitles({ name: 'HELLO' })).toEqual(['echo hello', 'echo hello'])
  expect(await listTitles({})).toEqual(['echo hello', 'ls /large', 'ls /large', 'echo hello'])
  expect(titleOf(await Job.read(caller, jobIds[0]!))).toBe('ls /large')
})

test('a search considers a limited number of jobs per request, and its cursor continues after them', async () => {
  const caller = await newCaller()
  const { organisationId } = caller
  const [clusterId = ''] = await storeClusters(caller, 1)
  const job = { organisationId, clusterId, type: 'InvokeScript' as const, status: 'Completed' as const }
  const items = Array.from({ length: 2100 }, (_, index) => {
    const id = newId('job', 1_700_000_000_000 + index)
    const times = { timeoutSeconds: 1, createdAtMs: 1, expiresAtMs: 1 }
    const createdBy = index % 700 === 0 ? 'u' : 'other'
    return { ...keys.job(organisationId, id), id, ...job, ...times, createdBy, ...keys.jobIndexKeys(job) }
  })
  for (const part of chunk(items, 250)) await batchPut(part)
  const foundIds: string[] = []
  let cursor: string | undefined
  for (let request = 0; request < 3; request++) {
    const query = { createdBy: 'u', page: 1, pageSize: 20, cursor }
    const { result, usage } = await measureUsage(() => list(caller, query))
    expect(usage.calls.length).toBeLessThanOrEqual(13)
    foundIds.push(...result.items.map(({ id }) => id))
    expect(result.searchedAll).toBe(request === 2)
    cursor = result.nextCursor
  }
  expect(cursor).toBeUndefined()
  const expected = items.filter(({ createdBy }) => createdBy === 'u').map(({ id }) => id)
  expect(foundIds).toEqual(expected.toReversed())
})
