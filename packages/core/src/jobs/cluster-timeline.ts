import type { TimelineEntry } from '@platform/contract/timeline'
import type { Caller } from '../caller.ts'
import { iso, optionalTimestamp } from '../clock.ts'
import * as Cluster from '../clusters/cluster.ts'
import { entryLimit, oldestEntryMs, storedEntries } from '../clusters/timeline.ts'
import { indexedKeys, type IndexedKey } from '../db/index-page.ts'
import * as keys from '../db/keys.ts'
import { getMany } from '../db/table.ts'
import { type Page, paged, pageOfItems, type PageQuery } from '../db/paging.ts'
import { platformError } from '../error.ts'
import { derivedId, lowestIdAt, timeMsOf } from '../id.ts'
import { parseRelayed, type JobRecord } from './record.ts'

export const read = (caller: Caller, clusterId: string, query: PageQuery) =>
  paged(['timeline', caller.organisationId, clusterId], query, (page) => readPage(caller, clusterId, page))

/** Reads the records of only those jobs that the page shows. */
async function readPage({ organisationId }: Caller, clusterId: string, page: Page) {
  const [cluster, storedItems] = await Promise.all([
    Cluster.find(organisationId, clusterId),
    storedEntries(organisationId, clusterId),
  ])
  if (cluster === undefined) throw platformError('cluster_not_found')
  const jobKeys = await newestJobKeys(clusterId)
  const sources = [
    ...storedItems.map((entry) => ({ id: entry.id, entry, jobKey: undefined })),
    ...jobKeys.map((jobKey) => ({ id: entryIdOf(jobKey.id), entry: undefined, jobKey })),
  ]
  const newestSources = sources.toSorted((one, other) => (one.id < other.id ? 1 : -1)).slice(0, entryLimit)
  const { items, ...rest } = pageOfItems(newestSources, page, ({ id }) => id)
  const jobEntries = await readJobEntries(items.map(({ jobKey }) => jobKey).filter((key) => key !== undefined))
  const entries = items.map(({ id, entry }) => entry ?? jobEntries.get(id))
  return { items: entries.filter((entry) => entry !== undefined), ...rest }
}

/** The entry of a job has the time of the job's creation, so that later changes of the job do not move the entry. */
const entryIdOf = (jobId: string): string => derivedId('evt', timeMsOf(jobId), jobId)

const newestJobKeys = (clusterId: string): Promise<IndexedKey[]> =>
  indexedKeys({
    index: 'gsi1',
    pk: keys.clusterJobs(clusterId),
    from: lowestIdAt('job', oldestEntryMs()),
    isNewestFirst: true,
    limit: entryLimit,
  })

/** Does not include removed jobs, which the index may still contain. */
async function readJobEntries(jobKeys: readonly IndexedKey[]): Promise<ReadonlyMap<string, TimelineEntry>> {
  const items = await getMany(jobKeys, { mayBeStale: true })
  const jobs = items.map(parseRelayed).filter((job) => job !== undefined)
  return new Map(jobs.map((job) => [entryIdOf(job.id), entryOf(job)]))
}

const entryOf = (job: JobRecord): TimelineEntry => ({
  id: entryIdOf(job.id),
  at: iso(job.createdAtMs),
  kind: 'job',
  title: `Job ${job.status.toLowerCase()}`,
  ...(job.statusReason !== undefined && { detail: job.statusReason }),
  resource: job.id,
  actor: actorOf(job),
  ...optionalTimestamp('startedAt', job.startedAtMs),
  ...optionalTimestamp('endedAt', job.completedAtMs),
})

/** The user who submitted the job, or for a cancelled job, the user who cancelled it, or the platform. */
function actorOf({ status, createdBy, cancelledBy }: JobRecord): TimelineEntry['actor'] {
  const userId = status === 'Cancelled' ? cancelledBy : createdBy
  return userId === undefined ? { kind: 'system', id: 'system' } : { kind: 'user', id: userId }
}
