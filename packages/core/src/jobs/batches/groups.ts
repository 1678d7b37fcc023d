import {
  type GroupCluster,
  type JobGroup,
  type JobGroups,
  type JobOutcome,
  maxResultOutputLength,
  maxSampleLength,
  sampledGroupLimit,
} from '@platform/contract/job-group'
import { compareGroups, listedClusterLimit } from '@platform/contract/merge-groups'
import type { Caller } from '../../caller.ts'
import { optionalTimestamp } from '../../clock.ts'
import { clusterNameOf } from '../../clusters/record.ts'
import { parseRemovedIds } from '../../clusters/removed.ts'
import * as keys from '../../db/keys.ts'
import { getMany, type Item } from '../../db/table.ts'
import { paged, pageOfItems, type PageQuery } from '../../db/paging.ts'
import { platformError } from '../../error.ts'
import { isId, sha256 } from '../../id.ts'
import { isTerminal, type JobRecord } from '../record.ts'
import { startKeys, startOfOutput } from '../result.ts'
import { parseBatch, readJobsOf } from './record.ts'

/** Groups the ended jobs of a batch by status, reason, exit code and output hash. */

interface Group extends Pick<JobGroup, 'key' | 'status' | 'count'> {
  /** Ordered from newest to oldest. */
  jobs: JobRecord[]
}

const outcomeOf = ({ statusReason, exitCode, outputSha256 }: JobRecord) => ({
  ...(statusReason !== undefined && { statusReason }),
  exitCode: exitCode ?? null,
  outputSha256: outputSha256 === undefined ? null : Buffer.from(outputSha256).toString('hex'),
})

/** A job that has output but no hash has a group of its own, because its output cannot be compared. */
function keyOf(job: JobRecord): string {
  const { statusReason = '', exitCode, outputSha256 } = outcomeOf(job)
  const output = outputSha256 ?? (job.outputBytes > 0 ? job.id : null)
  return sha256(JSON.stringify([job.status, statusReason, exitCode, output])).slice(0, 16)
}

function groupsOf(jobs: readonly JobRecord[]): Group[] {
  const groups = [...Map.groupBy(jobs.filter(isTerminal), keyOf)].flatMap(([key, members]) => {
    const status = members[0]?.status
    if (status !== 'Completed' && status !== 'Failed' && status !== 'Cancelled') return []
    return [{ key, status, count: members.length, jobs: members }]
  })
  return groups.toSorted(compareGroups)
}

/**
 * Reads the jobs, then the batch and other items. Of the results, only `jobs` excludes the jobs of removed clusters.
 */
async function readBatch(
  { organisationId }: Caller,
  batchId: string,
  otherKeys: (jobs: readonly JobRecord[]) => readonly keys.Key[] = () => [],
) {
  if (!isId('batch', batchId)) throw platformError('batch_not_found')
  const allJobs = await readJobsOf(organisationId, batchId)
  const others = otherKeys(allJobs)
  const itemKeys = [keys.batch(organisationId, batchId), keys.removedClusters(organisationId), ...others]
  const [item, removedItem, ...items] = await getMany(itemKeys)
  if (item === undefined) throw platformError('batch_not_found')
  const removedIds = parseRemovedIds(removedItem)
  const itemsByKey = new Map(others.map((key, index) => [textOf(key), items[index]]))
  const jobs = allJobs.filter(({ clusterId }) => !removedIds.has(clusterId))
  const itemOf = (key: keys.Key): Item | undefined => itemsByKey.get(textOf(key))
  return { batch: parseBatch(item), allJobs, jobs, itemOf }
}

const textOf = ({ pk, sk }: keys.Key): string => `${pk} ${sk}`

/** Prefers a job whose output is empty or in its record, so that most samples need no read. */
const sampleOf = ({ jobs }: Group): JobRecord | undefined => jobs.find((job) => startKeys(job).length === 0) ?? jobs[0]

const sampleKeys = (group: Group): keys.Key[] => {
  const job = sampleOf(group)
  return job === undefined || !hasResult(job) ? [] : startKeys(job)
}

const hasResult = ({ startedAtMs }: JobRecord): boolean => startedAtMs !== undefined

export async function read(caller: Caller, batchId: string): Promise<JobGroups> {
  const keysOfSamples = (jobs: readonly JobRecord[]) => groupsOf(jobs).slice(0, sampledGroupLimit).flatMap(sampleKeys)
  const { batch, allJobs, jobs, itemOf } = await readBatch(caller, batchId, keysOfSamples)
  // Jobs that are missing in a finished batch were removed with their cluster, or after the retention.
  const unstoredCount = batch.finishedAtMs === undefined ? batch.submittedCount - allJobs.length : 0
  return {
    groups: groupsOf(jobs).map((group, index) => groupView(group, index < sampledGroupLimit ? itemOf : undefined)),
    pending: unstoredCount + jobs.filter((job) => !isTerminal(job)).length,
  }
}

function groupView(group: Group, itemOf: ((key: keys.Key) => Item | undefined) | undefined): JobGroup {
  const { key, status, count, jobs } = group
  const [firstJob] = jobs
  const job = sampleOf(group) ?? firstJob
  if (job === undefined) throw new Error(`The group ${key} has no jobs`)
  const clusterIds = [...new Set(jobs.slice(0, listedClusterLimit).map(({ clusterId }) => clusterId))]
  return {
    key,
    status,
    ...outcomeOf(job),
    count,
    ...(itemOf !== undefined && hasResult(job) && sampleView(job, itemOf)),
    sampleJobId: job.id,
    clusterIds,
  }
}

function sampleView(job: JobRecord, itemOf: (key: keys.Key) => Item | undefined) {
  const items = startKeys(job).map(itemOf)
  // Jobs of a removed cluster are hidden, so the sample can be a different job than the one that was read.
  if (items.length > 0 && items.every((item) => item === undefined)) return {}
  const { text, isTruncated } = startOfOutput(job, items, maxSampleLength)
  return { sample: text, sampleTruncated: isTruncated }
}

const positionOf = ({ id }: JobRecord): string => id

/** A cursor is valid for the group, not for its position in the list. */
export async function listClusters(
  caller: Caller,
  { batchId, group: keyOrPosition }: { batchId: string; group: string },
  query: PageQuery,
) {
  const { jobs } = await readBatch(caller, batchId)
  const groups = groupsOf(jobs)
  const position = /^\d{1,3}$/.test(keyOrPosition) ? Number(keyOrPosition) : -1
  const group = groups.find(({ key }) => key === keyOrPosition) ?? groups[position]
  if (group === undefined) throw platformError('group_not_found')
  return paged(['group', caller.organisationId, batchId, group.key], query, async (page) => {
    const { items, ...rest } = pageOfItems(group.jobs, page, positionOf)
    const clusters = await getMany(items.map(({ clusterId }) => keys.cluster(caller.organisationId, clusterId)))
    const view = ({ id, clusterId }: JobRecord, index: number): GroupCluster => ({
      clusterId,
      name: clusterNameOf(clusters[index]) ?? clusterId,
      jobId: id,
    })
    return { items: items.map(view), ...rest }
  })
}

export async function listResults(caller: Caller, batchId: string, query: PageQuery) {
  const { organisationId } = caller
  const { jobs } = await readBatch(caller, batchId)
  return paged(['results', organisationId, batchId], query, async (page) => {
    const { items, ...rest } = pageOfItems(jobs, page, positionOf)
    const clusterKeys = items.map(({ clusterId }) => keys.cluster(organisationId, clusterId))
    const outputKeys = items.map((job) => (hasResult(job) && isTerminal(job) ? startKeys(job) : []))
    const foundItems = await getMany([...clusterKeys, ...outputKeys.flat()])
    let nextIndex = clusterKeys.length
    const results = items.map((job, index): JobOutcome => {
      const output = foundItems.slice(nextIndex, (nextIndex += outputKeys[index]?.length ?? 0))
      return resultView(job, clusterNameOf(foundItems[index]) ?? job.clusterId, output)
    })
    return { items: results, ...rest }
  })
}

function resultView(job: JobRecord, clusterName: string, items: readonly (Item | undefined)[]): JobOutcome {
  const { id: jobId, clusterId, status, startedAtMs, completedAtMs } = job
  const { text, isTruncated } = startOfOutput(job, items, maxResultOutputLength)
  return {
    jobId,
    clusterId,
    clusterName,
    status,
    ...outcomeOf(job),
    ...optionalTimestamp('startedAt', startedAtMs),
    ...optionalTimestamp('completedAt', completedAtMs),
    output: text,
    outputTruncated: isTruncated,
  }
}
