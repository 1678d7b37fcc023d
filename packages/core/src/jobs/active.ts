import * as keys from '../db/keys.ts'
import { getMany, type Item, query } from '../db/table.ts'
import { chunksOf, indexedKeys, type IndexRange, pageOfAll } from '../db/index-page.ts'
import { chunk } from '../lib/async.ts'
import { countJobs } from './totals-projection.ts'
import { organisations } from '../accounts/organisation.ts'
import { batchIdOf, jobIdOf, maxJobIndex } from './batches/id.ts'
import { countsOf, parseBatch, readJobItemsOf } from './batches/record.ts'

/** If there are more organisations than this, the check assumes that a job is running. */
const organisationLimit = 20_000
const pageSize = 1000

/**
 * The check reads at most this many queued and running jobs, and the jobs of this many batches, of an organisation. If
 * there are more and the totals contain a running job, it assumes that a job is running.
 */
const readLimit = 1000
const batchLimit = 100

const organisationsPerRead = 50

/**
 * Includes operations. Checks only organisations with queued or running jobs in their totals, which may count a running
 * job as queued (see `recording.ts`), and organisations with recent changes, which the totals may not contain yet.
 */
export async function isAnyJobRunning(limit = organisationLimit): Promise<boolean> {
  let after: Item | undefined
  for (let count = 0; count < limit; count += pageSize) {
    const organisationPage = await query({ pk: organisations.pk, limit: pageSize, ...(after && { after }) })
    const ids = organisationPage.items.map(({ sk }) => String(sk))
    // The outbox checks are read first, because a check is removed only after the totals contain the changes.
    const checks = await getMany(ids.map(keys.outboxCheck))
    const totals = await getMany(ids.map(keys.organisationCounts))
    const candidates = ids
      .map((id, index) => ({ id, totals: totals[index], hasChanges: checks[index]?.['duesk'] !== undefined }))
      .filter((each) => each.hasChanges || countJobs(each.totals, 'Queued') + countJobs(each.totals, 'Running') > 0)
    for (const part of chunk(candidates, organisationsPerRead)) {
      if ((await Promise.all(part.map((each) => isJobRunningIn(each.id, each.totals)))).includes(true)) return true
    }
    if (organisationPage.next === undefined) return false
    after = organisationPage.next
  }
  return true
}

/**
 * Reads the records consistently, because the totals may still count a finished update, which must not block a rollback,
 * and do not count a job as running at once. Starts with the oldest jobs, because relays run these first.
 */
async function isJobRunningIn(organisationId: string, totals: Item | undefined): Promise<boolean> {
  const [jobKeys, batchIds] = await Promise.all([
    indexedKeys({ ...activeRange(organisationId), limit: readLimit }),
    unfinishedBatchIds(organisationId),
  ])
  const isTooLong = jobKeys.length === readLimit || batchIds.length > batchLimit
  if (isTooLong && countJobs(totals, 'Running') > 0) return true
  if ((await getMany(jobKeys)).some(isRunning)) return true
  for (const part of chunk(batchIds.toReversed().slice(0, batchLimit), maxConcurrentReads)) {
    const jobs = await Promise.all(part.map((id) => readJobItemsOf(organisationId, id)))
    if (jobs.flat().some(isRunning)) return true
  }
  return false
}

const isRunning = (job: Item | undefined): boolean => job?.['status'] === 'Running'

type ActiveStatus = 'Queued' | 'Running'

const jobsPerRead = 100
const maxConcurrentReads = 8

const activeRange = (organisationId: string) =>
  ({ index: 'gsi3', pk: keys.activeJobsOf(organisationId) }) satisfies IndexRange

const byNewest = (one: { id?: unknown }, other: { id?: unknown }): number =>
  String(one.id) < String(other.id) ? 1 : -1

/** Newest first. */
async function unfinishedBatchIds(organisationId: string): Promise<string[]> {
  const range = { index: 'gsi3', pk: keys.unfinishedBatchesOf(organisationId), isNewestFirst: true } as const
  return (await indexedKeys(range)).map(({ id }) => id)
}

/**
 * Returns those of the batches that count jobs with the status, so that a batch which waits for its last jobs is not
 * read in vain. The counts lag.
 */
async function batchesWith(status: ActiveStatus, organisationId: string, batchIds: readonly string[]) {
  const items = await getMany(
    batchIds.map((id) => keys.batch(organisationId, id)),
    { mayBeStale: true },
  )
  const count = { Queued: 'queued', Running: 'running' } as const
  const batches = items.filter((item) => item !== undefined).map(parseBatch)
  return batches.filter((batch) => countsOf(batch)[count[status]] > 0).map(({ id }) => id)
}

async function readJobsOfBatches(organisationId: string, batchIds: readonly string[]): Promise<Item[]> {
  return (await Promise.all(batchIds.map((id) => readJobItemsOf(organisationId, id, { mayBeStale: true })))).flat()
}

interface ActivePart {
  /** Newest first. */
  jobs: Item[]
  /** The parts so far contain all jobs with the status from this position on. */
  oldestId: string
  batchCount: number
}

/**
 * Yields the jobs with the status in parts, newest first, and perhaps other jobs. `from` and `to` are job ids, both
 * inclusive.
 */
export async function* activeJobs(
  organisationId: string,
  status: ActiveStatus,
  { from = '', to = '~' }: { from?: string | undefined; to?: string | undefined },
): AsyncGenerator<ActivePart, void> {
  const isWithin = ({ id }: Item) => from <= String(id) && String(id) <= to
  const mayBeWithin = (id: string) => jobIdOf(id, 0) <= to && from <= jobIdOf(id, maxJobIndex)
  const batchIds = await batchesWith(
    status,
    organisationId,
    (await unfinishedBatchIds(organisationId)).filter(mayBeWithin),
  )
  let concurrency = 1
  for await (const jobKeys of followedByNone(chunksOf({ ...activeRange(organisationId), from, to }, jobsPerRead))) {
    let jobs = (await getMany(jobKeys, { mayBeStale: true })).filter((job) => job !== undefined)
    const oldestId = jobKeys.at(-1)?.id ?? ''
    while (batchIds[0] !== undefined && jobIdOf(batchIds[0], 0) > oldestId) {
      // Few batches usually fill a page; more are read at once only if they do not.
      const group = batchIds.slice(0, concurrency).filter((id) => jobIdOf(id, 0) > oldestId)
      batchIds.splice(0, group.length)
      concurrency = Math.min(2 * concurrency, maxConcurrentReads)
      const jobsOfBatches = await readJobsOfBatches(organisationId, group)
      const reachedId = jobIdOf(group.at(-1) ?? '', 0)
      const isNewer = ({ id }: Item) => String(id) > reachedId
      const reachedJobs = [...jobs.filter(isNewer), ...jobsOfBatches.filter(isWithin)].toSorted(byNewest)
      yield { jobs: reachedJobs, oldestId: reachedId, batchCount: group.length }
      jobs = jobs.filter((job) => !isNewer(job))
    }
    yield { jobs, oldestId, batchCount: 0 }
  }
}

async function* followedByNone<Element>(parts: AsyncIterable<Element[]>): AsyncGenerator<Element[], void> {
  yield* parts
  yield []
}

/** Returns the jobs of a cluster with the status, and perhaps others, newest first. */
export async function activeJobsOfCluster(
  organisationId: string,
  clusterId: string,
  status: ActiveStatus,
): Promise<Item[]> {
  const ofCluster = { index: 'gsi1', pk: keys.clusterJobs(clusterId) } as const
  const [{ keys: singleKeys }, allBatchIds] = await Promise.all([
    pageOfAll([ofCluster, activeRange(organisationId)], { page: 1, pageSize: Number.MAX_SAFE_INTEGER }),
    unfinishedBatchIds(organisationId),
  ])
  const jobs = (await getMany(singleKeys, { mayBeStale: true })).filter((job) => job !== undefined)
  const oldestBatchId = allBatchIds.at(-1)
  if (oldestBatchId === undefined) return jobs
  const newerKeys = await indexedKeys({ ...ofCluster, from: jobIdOf(oldestBatchId, 0) })
  const isOfCluster = new Set(newerKeys.map(({ id }) => batchIdOf(id)))
  const batchIds = await batchesWith(
    status,
    organisationId,
    allBatchIds.filter((id) => isOfCluster.has(id)),
  )
  for (const part of chunk(batchIds, maxConcurrentReads)) {
    const jobsOfBatches = await readJobsOfBatches(organisationId, part)
    jobs.push(...jobsOfBatches.filter((job) => job['clusterId'] === clusterId))
  }
  return jobs.toSorted(byNewest)
}
