import { type Caller } from '@platform/core/caller'
import * as Cluster from '@platform/core/clusters/cluster'
import * as keys from '@platform/core/db/keys'
import { batchPut, query, get } from '@platform/core/db/table'
import { dispatch } from '@platform/core/jobs/dispatch'
import * as Job from '@platform/core/jobs/job'
import { parseJob } from '@platform/core/jobs/record'
import { claim } from '@platform/core/jobs/claim'
import { complete } from '@platform/core/jobs/complete'
import { callerWithCluster, type enrolledCluster } from '../../support/fixtures.ts'
import { newId } from '@platform/core/id'

export type EnrolledCluster = Awaited<ReturnType<typeof enrolledCluster>>

/** A submission that is valid unless `payload` or `more` say otherwise. */
export const scriptJob = (clusterId: string, payload: object = {}, more: object = {}) => ({
  clusterId,
  type: 'InvokeScript',
  payload: { script: 'echo hello', ...payload },
  ...more,
})

/** A job that waits in the inbox of its cluster. */
export async function dispatchedJob(
  caller: Caller,
  { cluster }: EnrolledCluster,
  payload: object = {},
  more: object = {},
) {
  const { id } = await Job.submit(caller, scriptJob(cluster.id, payload, more))
  await dispatch({ organisationId: caller.organisationId, jobId: id })
  return id
}

/** A job in the inbox of a new cluster. */
export async function waitingJob(payload: object = {}, more: object = {}) {
  const { caller, enrolled } = await callerWithCluster()
  const jobId = await dispatchedJob(caller, enrolled, payload, more)
  const key = keys.job(caller.organisationId, jobId)
  const record = async () => parseJob((await get(key)) ?? {})
  return { caller, enrolled, jobId, key, record }
}

/** The same job after its relay has claimed it. */
export async function runningJob(payload: object = {}) {
  const waiting = await waitingJob(payload)
  const { leaseId } = await claim(waiting.enrolled.request(), waiting.jobId, undefined)
  return { ...waiting, leaseId }
}

/** How a relay reports a run on all its nodes. */
export const completionReport = (
  enrolled: EnrolledCluster,
  leaseId: string,
  exitCode: number | null = 0,
  outcome = 'exited' as const,
) => ({
  leaseId,
  outcome,
  exitCode,
  nodes: enrolled.relay.nodes.map(({ id }) => ({ nodeId: id, exitCode })),
})

/** The counters that a cluster keeps of its jobs. */
export const jobCounters = async (caller: Caller, { cluster }: EnrolledCluster) => {
  const row = await Cluster.find(caller.organisationId, cluster.id)
  return [row?.activeJobs, row?.waitingJobs]
}

/** The jobs that wait in the inbox of a cluster. */
export const inboxItems = async (clusterId: string): Promise<string[]> => {
  const { items } = await query({ pk: keys.inbox(clusterId, '').pk })
  return items.map(({ sk }) => String(sk))
}

/** Runs a waiting job as its relay would. */
export async function runJob(enrolled: EnrolledCluster, jobId: string, exitCode = 0) {
  const { leaseId } = await claim(enrolled.request(), jobId, undefined)
  await complete(enrolled.request(), jobId, completionReport(enrolled, leaseId, exitCode))
}

/** A job as far as lists tell. */
export async function storeJob(organisationId: string, status: string): Promise<keys.Key> {
  const id = newId('job')
  const key = keys.job(organisationId, id)
  await batchPut([{ ...key, id, status, ...keys.jobStatusIndexKey({ organisationId }, status) }])
  return key
}
