import { countWaiting } from '@platform/core/jobs/inbox'
import { jobStatuses } from '@platform/contract/job'
import { projectOrganisation } from '@platform/core/background/projections'
import * as Batch from '@platform/core/jobs/batches/batch'
import { advanceBatch } from '@platform/core/jobs/batches/advance'
import type { Caller } from '@platform/core/caller'
import * as Cluster from '@platform/core/clusters/cluster'
import * as keys from '@platform/core/db/keys'
import { getMany, batchPut } from '@platform/core/db/table'
import { newId } from '@platform/core/id'
import { parseJob } from '@platform/core/jobs/record'
import { nameAttributes, statusIndexKeys } from '@platform/core/clusters/record'
import { scriptJob } from './jobs.ts'

/** Stores the records, names and labels of clusters as registration does, but does not update the offset index. */
export async function storeClusters({ organisationId }: Caller, count: number): Promise<string[]> {
  const ids = Array.from({ length: count }, () => newId('clus'))
  const indexKeys = statusIndexKeys({ organisationId, type: 'Hypervisor' }, 'Pending')
  const fields = { type: 'Hypervisor', activeJobs: 0, waitingJobs: 0, ...indexKeys }
  await batchPut(
    ids.flatMap((id) => [
      { ...keys.cluster(organisationId, id), id, name: id, ...fields },
      { ...keys.clusterName(organisationId, id), ...nameAttributes(id, id) },
      { ...keys.clusterLabels(organisationId, id), labels: '', derived: 'type=Hypervisor' },
    ]),
  )
  return ids
}

export const jobsForClusters = (clusterIds: readonly string[], count = clusterIds.length, payload: object = {}) =>
  Array.from({ length: count }, (_, index) => scriptJob(clusterIds[index % clusterIds.length] ?? '', payload))

export async function submitAndExpand(caller: Caller, submission: Parameters<typeof Batch.submit>[1]) {
  const acceptedBatch = await Batch.submit(caller, submission)
  await advance(caller, acceptedBatch.batchId)
  return acceptedBatch
}

export const advance = (caller: Caller, batchId: string) =>
  advanceBatch({ organisationId: caller.organisationId, batchId })

export const runProjections = (caller: Caller) => projectOrganisation(caller.organisationId)

export async function readJobRecords({ organisationId }: Caller, jobIds: readonly string[]) {
  const items = await getMany(jobIds.map((id) => keys.job(organisationId, id)))
  return items.filter((item) => item !== undefined).map(parseJob)
}

export const countByStatus = (jobs: readonly { status: string }[]): Record<string, number> =>
  Object.fromEntries(
    jobStatuses.map((status) => [status.toLowerCase(), jobs.filter((job) => job.status === status).length]),
  )

export async function readClusterCounters({ organisationId }: Caller, clusterIds: readonly string[]) {
  const records = await Promise.all(clusterIds.map((id) => Cluster.find(organisationId, id)))
  return records.map((record) => [record?.activeJobs, record && countWaiting(record), record?.jobs])
}
