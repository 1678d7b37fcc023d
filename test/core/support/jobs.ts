import { type Caller } from '@platform/core/caller'
import * as Cluster from '@platform/core/cluster'
import { dispatch } from '@platform/core/dispatch'
import * as Job from '@platform/core/job'
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
