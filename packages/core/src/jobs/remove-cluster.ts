import type { Caller } from '../caller.ts'
import * as Cluster from '../clusters/cluster.ts'
import { PlatformError } from '../error.ts'
import { recordStartsAndEnds } from './recording.ts'

/** Removes a cluster like `Cluster.remove`. Ends of its jobs that are not recorded yet do not prevent the removal. */
export async function removeCluster(caller: Caller, clusterId: string): Promise<void> {
  try {
    await Cluster.remove(caller, clusterId)
  } catch (error) {
    if (!(error instanceof PlatformError) || error.code !== 'cluster_has_active_jobs') throw error
    const cluster = await Cluster.find(caller.organisationId, clusterId)
    const listedIds = [...(cluster?.listedBatchJobs ?? [])]
    if (listedIds.length === 0) throw error
    await recordStartsAndEnds(caller.organisationId, listedIds)
    await Cluster.remove(caller, clusterId)
  }
}
