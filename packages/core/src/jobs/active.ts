import * as keys from '../db/keys.ts'
import { getMany, type Item, query, queryAll } from '../db/table.ts'
import { chunksOf, indexedKeys, type IndexedKey, type IndexRange, pageOfAll } from '../db/index-page.ts'
import { chunk } from '../lib/async.ts'
import { countJobs } from './totals-projection.ts'
import { organisations } from '../accounts/organisation.ts'
import { batchIdOf, jobIdOf, maxJobIndex } from './batches/id.ts'

/** If there are more organisations than this, the check assumes that a job is running. */
const organisationLimit = 20_000
const pageSize = 1000

/**
 * The check reads about this many queued jobs of an organisation. If there are more and the totals contain a running job,
 * it assumes that a job is running.
 */
const readLimit = 1000

const organisationsPerRead = 50

/**
 * Includes operations. Checks only organisations with queued or running jobs in their totals, which may count a running
 * job as queued (see `start.ts`), and organisations with recent changes, which the totals may not contain yet.
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

/** Reads the records, because the totals may still count a finished update, which must not block a rollback. */
async function isJobRunningIn(organisationId: string, totals: Item | undefined): Promise<boolean> {
  let readCount = 0
  for await (const jobs of activeJobs(organisationId)) {
    if (jobs.some(({ status }) => status === 'Running')) return true
    readCount += jobs.length
    if (readCount >= readLimit) return countJobs(totals, 'Running') > 0
  }
  return false
}

const jobsPerRead = 100

const activeRange = (organisationId: string) =>
  ({ index: 'gsi3', pk: keys.activeJobsOf(organisationId) }) satisfies IndexRange

/** Newest first. The range includes batches of which no job is active any more, until they are finished. */
async function unfinishedBatchIds(organisationId: string): Promise<string[]> {
  const range = { index: 'gsi3', pk: keys.unfinishedBatchesOf(organisationId), isNewestFirst: true } as const
  return (await indexedKeys(range)).map(({ id }) => id)
}

/** Yields the items of the queued and running jobs in parts, newest first. `from` and `to` are job ids, both inclusive. */
export async function* activeJobs(
  organisationId: string,
  { from = '', to = '~' }: { from?: string | undefined; to?: string | undefined } = {},
): AsyncGenerator<Item[], void> {
  const batchIds = (await unfinishedBatchIds(organisationId)).filter(
    (id) => jobIdOf(id, 0) <= to && from <= jobIdOf(id, maxJobIndex),
  )
  for await (const jobKeys of chunksOf({ ...activeRange(organisationId), from, to }, jobsPerRead)) {
    let jobs = (await getMany(jobKeys, { mayBeStale: true })).filter((job) => job !== undefined)
    const oldestId = jobKeys.at(-1)?.id ?? ''
    while (batchIds[0] !== undefined && jobIdOf(batchIds[0], 0) > oldestId) {
      const batchId = batchIds.shift() ?? ''
      const isNewer = ({ id }: Item) => String(id) > jobIdOf(batchId, 0)
      yield jobs.filter(isNewer)
      yield await activeJobsOfBatch(organisationId, batchId, from, to)
      jobs = jobs.filter((job) => !isNewer(job))
    }
    yield jobs
  }
  for (const batchId of batchIds) yield await activeJobsOfBatch(organisationId, batchId, from, to)
}

async function activeJobsOfBatch(organisationId: string, batchId: string, from: string, to: string): Promise<Item[]> {
  const range = { ...keys.jobsOfBatch(organisationId, batchId), isNewestFirst: true, mayBeStale: true }
  const isWithin = ({ id, status }: Item) => keys.isActive(String(status)) && from <= String(id) && String(id) <= to
  return (await queryAll(range)).filter(isWithin)
}

/** Newest first. May include ended jobs of unfinished batches. */
export async function activeKeysOfCluster(organisationId: string, clusterId: string): Promise<IndexedKey[]> {
  const ofCluster = { index: 'gsi1', pk: keys.clusterJobs(clusterId) } as const
  const [{ keys: singleKeys }, batchIds] = await Promise.all([
    pageOfAll([ofCluster, activeRange(organisationId)], { page: 1, pageSize: Number.MAX_SAFE_INTEGER }),
    unfinishedBatchIds(organisationId),
  ])
  const oldestId = batchIds.at(-1)
  if (oldestId === undefined) return singleKeys
  const isUnfinished = new Set(batchIds)
  const newerKeys = await indexedKeys({ ...ofCluster, from: jobIdOf(oldestId, 0) })
  const batchKeys = newerKeys.filter(({ id }) => isUnfinished.has(batchIdOf(id)))
  return [...singleKeys, ...batchKeys].toSorted((one, other) => (one.id < other.id ? 1 : -1))
}
