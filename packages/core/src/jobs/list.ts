import type { JobStatus, JobSummary, jobTypes } from '@platform/contract/job'
import { jobTitle } from '@platform/contract/job-title'
import { jobIdOf } from './batches/id.ts'
import { listUnstoredJobs } from './batches/find-job.ts'
import { findBatchAndRemoved, readJobsOf } from './batches/record.ts'
import type { Caller } from '../caller.ts'
import * as Cluster from '../clusters/cluster.ts'
import { parseRemovedIds } from '../clusters/removed.ts'
import * as keys from '../db/keys.ts'
import { get, getConsistent, getMany, type Item } from '../db/table.ts'
import { activeJobs, activeJobsOfCluster } from './active.ts'
import { indexedKeys, type IndexRange, type KeyPage, pageOfAll, pageOfRange, rangeBefore } from '../db/index-page.ts'
import { firstOf, type Page, paged, pageOfItems, type PageQuery, type Positioned } from '../db/paging.ts'
import { lowestIdAt } from '../id.ts'
import { type JobRecord, jobSummary, parseJob, titleOf } from './record.ts'
import { countHidden, countStored, countSubmitted } from './totals-projection.ts'
import { pageOfType, pageWithoutOperations } from '../operations/list.ts'
import { isOperation, type OperationRecord, parseOperation } from '../operations/record.ts'
import { operationSummary } from '../operations/view.ts'

/** Pages list the newest jobs first. The indexes and the projected totals lag behind writes. */

export interface JobFilter {
  clusterId?: string | undefined
  status?: JobStatus | undefined
  type?: (typeof jobTypes)[number] | undefined
  batchId?: string | undefined
  /** Id or username. */
  createdBy?: string | undefined
  name?: string | undefined
  /** Inclusive. */
  since?: string | undefined
  /** Exclusive. */
  until?: string | undefined
}

/** Limits of one search request: the records that it reads, or the keys if the filter needs no records. */
const maxSearchedRecords = 1000
const maxSearchedKeys = 10_000
const maxSearchedBatches = 100

/**
 * A filter for a batch reads all its jobs. Other filters for submitter, name or time search a limited number of jobs.
 * Without such a filter, a filter for both cluster and status reads both indexes. No index distinguishes Queued from
 * Running jobs, so a filter for one of these statuses reads the records of active jobs until the page is full.
 */
export const list = (caller: Caller, { page, pageSize, cursor, ...filter }: JobFilter & PageQuery) =>
  paged(['jobs', caller.organisationId, filter], { page, pageSize, cursor }, async (each) => {
    const { jobs, ...rest } = await findJobs(caller, filter, each)
    return { items: jobs.map(summaryOf), ...rest, ...(isSearch(filter) && { searchedAll: rest.searchedAll ?? true }) }
  })

interface JobMatches extends Positioned {
  jobs: (JobRecord | OperationRecord)[]
  totalCount: number
  /** Whether a search considered all jobs of its range. */
  searchedAll?: boolean
}

const noJobs: JobMatches = { jobs: [], totalCount: 0 }

async function findJobs({ organisationId }: Caller, filter: JobFilter, page: Page): Promise<JobMatches> {
  const { clusterId, status, type, batchId } = filter
  if (type !== undefined && type !== 'InvokeScript') {
    // Operations have neither a cluster nor a batch.
    return clusterId === undefined && batchId === undefined
      ? pageOfType(organisationId, type, isFiltered(filter) ? (job) => matches(job, filter) : undefined, page)
      : noJobs
  }
  if (batchId !== undefined) return pageOfBatch(organisationId, batchId, filter, page)
  const isActive = keys.isActive(status)
  const byStatus = { index: 'gsi3', pk: keys.organisationJobs(organisationId, status) } as const
  if (clusterId !== undefined) {
    const ofCluster = { index: 'gsi1', pk: keys.clusterJobs(clusterId) } as const
    const cluster = await Cluster.find(organisationId, clusterId)
    if (cluster === undefined) return noJobs
    if (isSearch(filter)) return search(organisationId, ofCluster, filter, page)
    if (status === undefined) return readPage(filter, await pageOfRange(ofCluster, async () => cluster.jobs, page))
    if (!isActive) return readPage(filter, await pageOfAll([ofCluster, byStatus], page))
    const jobs = (await activeJobsOfCluster(organisationId, clusterId, status)).map(parseRecord)
    const { items, ...rest } = pageOfItems(filterJobs(jobs, filter), page, ({ id }) => id)
    return { jobs: items, ...rest }
  }
  const range =
    status === undefined ? ({ index: 'gsi2', pk: keys.organisationJobs(organisationId) } as const) : byStatus
  if (isSearch(filter)) return search(organisationId, range, filter, page)
  const hiddenJobs = { clusterIds: new Set<unknown>() as ReadonlySet<unknown>, count: 0 }
  const readTotals = async () => {
    const [item, removedItem] = await getConsistent([
      keys.organisationCounts(organisationId),
      keys.removedClusters(organisationId),
    ])
    Object.assign(hiddenJobs, { clusterIds: parseRemovedIds(removedItem), count: countHidden(item, status) })
    return item
  }
  if (isActive) {
    const readTotal = async () => (type === undefined ? countStored : countSubmitted)(await readTotals(), status)
    return pageOfActive(organisationId, readTotal, { ...filter, status }, page)
  }
  const keysOfPage = await (type === undefined
    ? pageOfRange(range, async () => countStored(await readTotals(), status), page)
    : pageWithoutOperations(organisationId, range, async () => countSubmitted(await readTotals(), status), page))
  const isComplete = page.page === 1 && page.before === undefined && keysOfPage.next === undefined
  return readPage(filter, keysOfPage, isComplete ? { ...hiddenJobs, count: 0 } : hiddenJobs)
}

const parseRecord = (item: Item): JobRecord | OperationRecord =>
  isOperation(item) ? parseOperation(item) : parseJob(item)

const summaryOf = (job: JobRecord | OperationRecord): JobSummary =>
  'clusterId' in job ? jobSummary(job) : operationSummary(job)

const clusterOf = (job: JobRecord | OperationRecord) => ('clusterId' in job ? job.clusterId : undefined)

const isSearch = ({ createdBy, name, since, until }: JobFilter): boolean =>
  (createdBy ?? name ?? since ?? until) !== undefined

const isFiltered = (filter: JobFilter): boolean => filter.status !== undefined || isSearch(filter)

const titleText = (job: JobRecord | OperationRecord): string => ('clusterId' in job ? titleOf(job) : jobTitle(job))

const isCreatedBy = ({ createdBy, username }: JobRecord | OperationRecord, idOrName: string): boolean =>
  createdBy === idOrName || (username !== undefined && keys.foldUsername(username) === keys.foldUsername(idOrName))

const matches = (job: JobRecord | OperationRecord, filter: JobFilter): boolean =>
  (filter.clusterId === undefined || filter.clusterId === clusterOf(job)) &&
  (filter.status ?? job.status) === job.status &&
  (filter.type ?? job.type) === job.type &&
  (filter.createdBy === undefined || isCreatedBy(job, filter.createdBy)) &&
  (filter.name === undefined || keys.fold(titleText(job)).includes(keys.fold(filter.name))) &&
  isWithinTimes(job.id, filter)

function isWithinTimes(jobId: string, filter: JobFilter): boolean {
  const { from = '', to = '~' } = timeRange(filter)
  return from <= jobId && jobId <= to
}

const timeRange = ({ since, until }: JobFilter): { from?: string; to?: string } => ({
  ...(since !== undefined && { from: firstIdAt(since) }),
  ...(until !== undefined && { to: firstIdAt(until) }),
})

const firstIdAt = (time: string): string => lowestIdAt('job', Math.max(0, Date.parse(time)))

/**
 * A page considers a limited number of jobs. If too few of them match to fill the page, the cursor continues after the
 * last job that was considered.
 */
async function search(organisationId: string, range: IndexRange, filter: JobFilter, page: Page): Promise<JobMatches> {
  const { clusterId, status, type, createdBy, name } = filter
  const needsRecords =
    (createdBy ?? name ?? type) !== undefined ||
    keys.isActive(status) ||
    (clusterId !== undefined && status !== undefined)
  const limit = needsRecords ? maxSearchedRecords : maxSearchedKeys
  const boundedRange = rangeBefore({ ...range, ...timeRange(filter) }, page)
  const removedIds = parseRemovedIds(await get(keys.removedClusters(organisationId), { mayBeStale: true }))
  const matching = (jobs: readonly (JobRecord | OperationRecord)[]) =>
    jobs.filter((job) => matches(job, filter) && !removedIds.has(clusterOf(job)))
  if (clusterId === undefined && keys.isActive(status)) {
    const limits = { count: limit, batchLimit: maxSearchedBatches, isCounted: isActiveJob }
    const { jobs, oldestId } = await newestActive(organisationId, status, boundedRange, limits)
    const { items, totalCount, next } = pageOfItems(matching(jobs), page, ({ id }) => id)
    return { jobs: items, totalCount, searchedAll: oldestId === undefined, next: next ?? oldestId }
  }
  const foundKeys = await indexedKeys({ ...boundedRange, isNewestFirst: true, limit: limit + 1 })
  const consideredKeys = foundKeys.slice(0, limit)
  const searchedAll = foundKeys.length <= limit
  const nextOf = (next: string | undefined) => next ?? (searchedAll ? undefined : consideredKeys.at(-1)?.id)
  if (needsRecords) {
    const { items, totalCount, next } = pageOfItems(matching(await readJobs(consideredKeys)), page, ({ id }) => id)
    return { jobs: items, totalCount, searchedAll, next: nextOf(next) }
  }
  const { items, totalCount, next } = pageOfItems(consideredKeys, page, ({ id }) => id)
  return { jobs: matching(await readJobs(items)), totalCount, searchedAll, next: nextOf(next) }
}

const isActiveJob = ({ status }: JobRecord | OperationRecord): boolean => keys.isActive(status)

/**
 * Reads active jobs until more than `count` of them are counted, or `batchLimit` batches have been read. Then, `oldestId`
 * is the position up to which the jobs are complete; otherwise, the jobs are complete.
 */
async function newestActive(
  organisationId: string,
  status: 'Queued' | 'Running',
  range: Pick<IndexRange, 'from' | 'to'>,
  { count, batchLimit, isCounted }: ActiveLimits,
): Promise<{ jobs: (JobRecord | OperationRecord)[]; oldestId?: string }> {
  const jobs: (JobRecord | OperationRecord)[] = []
  let readBatches = 0
  for await (const part of activeJobs(organisationId, status, range)) {
    jobs.push(...part.jobs.map(parseRecord).filter(isCounted))
    readBatches += part.batchCount
    if (jobs.length > count) return { jobs: jobs.slice(0, count), oldestId: jobs[count - 1]?.id ?? part.oldestId }
    if (readBatches >= batchLimit) return { jobs, oldestId: part.oldestId }
  }
  return { jobs }
}

interface ActiveLimits {
  count: number
  batchLimit: number
  isCounted: (job: JobRecord | OperationRecord) => boolean
}

async function readJobs(jobKeys: readonly keys.Key[]): Promise<(JobRecord | OperationRecord)[]> {
  const items = await getMany(jobKeys, { mayBeStale: true })
  return items.filter((item) => item !== undefined).map(parseRecord)
}

async function pageOfActive(
  organisationId: string,
  readTotal: () => Promise<number>,
  filter: JobFilter & { status: 'Queued' | 'Running' },
  page: Page,
): Promise<JobMatches> {
  const offset = (page.page - 1) * page.pageSize
  const end = offset + page.pageSize
  const total = readTotal()
  const isCounted = (job: JobRecord | OperationRecord) => matches(job, filter)
  const limits = { count: end + 1, batchLimit: Number.POSITIVE_INFINITY, isCounted }
  const { jobs } = await newestActive(organisationId, filter.status, rangeBefore({}, page), limits)
  const { items, next } = firstOf(jobs.slice(offset), page.pageSize, ({ id }) => id)
  const isComplete = jobs.length <= end && page.before === undefined
  return { jobs: items, totalCount: isComplete ? jobs.length : Math.max(await total, jobs.length), next }
}

const filterJobs = <Job extends JobRecord | OperationRecord>(jobs: readonly Job[], filter: JobFilter): Job[] =>
  jobs.filter((job) => matches(job, filter))

/** The jobs of removed clusters; `count` also includes those on other pages. */
interface HiddenJobs {
  clusterIds: ReadonlySet<unknown>
  count: number
}

/** Jobs that have been removed, or no longer match the filter, are neither shown nor counted. */
async function readPage(
  filter: JobFilter,
  { keys: pageKeys, totalCount, next }: KeyPage,
  hiddenJobs: HiddenJobs = { clusterIds: new Set(), count: 0 },
): Promise<JobMatches> {
  const items = pageKeys.length === 0 ? [] : await getConsistent(pageKeys, { mayBeStale: true })
  const currentJobs = items.filter((item) => item !== undefined).map(parseRecord)
  const matchingJobs = filterJobs(currentJobs, filter)
  const jobs = matchingJobs.filter((job) => !hiddenJobs.clusterIds.has(clusterOf(job)))
  const hiddenCount = Math.max(hiddenJobs.count, matchingJobs.length - jobs.length)
  const staleCount = pageKeys.length - matchingJobs.length
  return { jobs, totalCount: Math.max(jobs.length, totalCount - staleCount - hiddenCount), next }
}

/** Pending jobs are read first, because they may be stored during the request. */
async function pageOfBatch(
  organisationId: string,
  batchId: string,
  filter: JobFilter,
  page: Page,
): Promise<JobMatches> {
  const batchAndRemoved = await findBatchAndRemoved(organisationId, batchId)
  if (batchAndRemoved === undefined) return noJobs
  const { batch, removedIds } = batchAndRemoved
  const pendingJobs = new Map((await listUnstoredJobs(batch)).map((job) => [job.id, job]))
  const jobIds = Array.from({ length: batch.submittedCount }, (_, index) => jobIdOf(batchId, index)).toReversed()
  const storedJobs = new Map((await readJobsOf(organisationId, batchId)).map((job) => [job.id, job]))
  const jobs = jobIds.flatMap((id) => {
    const job = storedJobs.get(id) ?? pendingJobs.get(id)
    return job === undefined || !matches(job, filter) || removedIds.has(job.clusterId) ? [] : [job]
  })
  const { items: pageJobs, ...rest } = pageOfItems(jobs, page, ({ id }) => id)
  return { jobs: pageJobs, ...rest }
}
