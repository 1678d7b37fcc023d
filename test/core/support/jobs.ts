import { type Caller } from '@platform/core/caller'
import * as Cluster from '@platform/core/clusters/cluster'
import * as keys from '@platform/core/db/keys'
import { query } from '@platform/core/db/table'
import { dispatch } from '@platform/core/jobs/dispatch'
import * as Job from '@platform/core/jobs/job'
import { claim, complete } from '@platform/core/jobs/claim'
import { type enrolledCluster } from '../../support/world.ts'

export type World = Awaited<ReturnType<typeof enrolledCluster>>

/** A submission that is valid unless `payload` or `more` say otherwise. */
export const script = (clusterId: string, payload: object = {}, more: object = {}) => ({
  clusterId,
  type: 'InvokeScript',
  payload: { script: 'echo hello', ...payload },
  ...more,
})

/** A job that waits in the inbox of its cluster. */
export async function waitingJob(caller: Caller, { cluster }: World, payload: object = {}, more: object = {}) {
  const { id } = await Job.submit(caller, script(cluster.id, payload, more))
  await dispatch({ organisationId: caller.organisationId, jobId: id })
  return id
}

/** How a relay reports a run on all its nodes. */
export const completion = (
  world: World,
  leaseId: string,
  exitCode: number | null = 0,
  outcome = 'exited' as const,
) => ({
  leaseId,
  outcome,
  exitCode,
  nodes: world.relay.nodes.map(({ id }) => ({ nodeId: id, exitCode })),
})

/** The counters that a cluster keeps of its jobs. */
export const counters = async (caller: Caller, { cluster }: World) => {
  const row = await Cluster.find(caller.organisationId, cluster.id)
  return [row?.activeJobs, row?.waitingJobs]
}

/** The jobs that wait in the inbox of a cluster. */
export const inboxOf = async (clusterId: string): Promise<string[]> => {
  const { items } = await query({ pk: keys.inbox(clusterId, '').pk })
  return items.map(({ sk }) => String(sk))
}

/** Runs a waiting job as its relay would. */
export async function runJob(world: World, jobId: string, exitCode = 0) {
  const { leaseId } = await claim(world.request(), jobId, undefined)
  await complete(world.request(), jobId, completion(world, leaseId, exitCode))
}
