import type { ClusterSummary } from '@platform/contract/cluster'
import type { Caller } from '../caller.ts'
import { iso } from '../clock.ts'
import { type ClusterQuery, list } from '../clusters/list.ts'
import * as keys from '../db/keys.ts'
import { getConsistent } from '../db/table.ts'
import { platformError } from '../error.ts'
import { parseJob, titleOf } from './record.ts'

/** Returns a page of clusters. With `include`, also reads the last job of each cluster. */
export async function listClusters(
  caller: Caller,
  { include, ...query }: ClusterQuery & { include?: 'lastJob' | undefined },
): ReturnType<typeof list> {
  if (include === undefined) return list(caller, query)
  if (!caller.permissions.has('jobs:read')) throw platformError('forbidden', { requiredPermission: 'jobs:read' })
  const { items, ...page } = await list(caller, query)
  const jobIds = items.map(({ lastJobId }) => lastJobId).filter((id) => id !== undefined)
  const jobs = await readLastJobs(caller, jobIds)
  return {
    ...page,
    items: items.map((cluster) => {
      const lastJob = jobs.get(cluster.lastJobId ?? '')
      return lastJob === undefined ? cluster : { ...cluster, lastJob }
    }),
  }
}

async function readLastJobs({ organisationId }: Caller, jobIds: readonly string[]) {
  const jobKeys = jobIds.map((id) => keys.job(organisationId, id))
  const items = jobKeys.length === 0 ? [] : await getConsistent(jobKeys, { mayBeStale: true })
  const jobs = items.filter((item) => item !== undefined).map(parseJob)
  return new Map(
    jobs.map((job): [string, ClusterSummary['lastJob']] => {
      const { id, status, createdAtMs, name } = job
      const lastJob = { id, status, createdAt: iso(createdAtMs), title: titleOf(job) }
      return [id, { ...lastJob, ...(name !== undefined && { name }) }]
    }),
  )
}
