import type { Caller } from '@platform/core/caller'
import * as Cluster from '@platform/core/clusters/cluster'
import * as keys from '@platform/core/db/keys'
import { batchPut, query, get } from '@platform/core/db/table'
import type { ClusterRecord } from '@platform/core/clusters/record'
import { countWaiting, listedIn, waitingUnlisted } from '@platform/core/jobs/inbox'
import * as Job from '@platform/core/jobs/job'
import { parseJob } from '@platform/core/jobs/record'
import { claim } from '@platform/core/jobs/claim'
import { complete } from '@platform/core/jobs/complete'
import { callerWithCluster, type enrolledCluster } from '../../support/fixtures.ts'
import { newId } from '@platform/core/id'

export type EnrolledCluster = Awaited<ReturnType<typeof enrolledCluster>>

export const scriptJob = (clusterId: string, payload: object = {}, overrides: object = {}) => ({
  clusterId,
  type: 'InvokeScript',
  payload: { script: 'echo hello', ...payload },
  ...overrides,
})

export async function dispatchedJob(
  caller: Caller,
  { cluster }: EnrolledCluster,
  payload: object = {},
  overrides: object = {},
) {
  const { id } = await Job.submit(caller, scriptJob(cluster.id, payload, overrides))
  return id
}

export async function waitingJob(payload: object = {}, overrides: object = {}) {
  const { caller, enrolled } = await callerWithCluster()
  const jobId = await dispatchedJob(caller, enrolled, payload, overrides)
  const key = keys.job(caller.organisationId, jobId)
  const record = async () => parseJob((await get(key)) ?? {})
  return { caller, enrolled, jobId, key, record }
}

export async function runningJob(payload: object = {}) {
  const waitingJobState = await waitingJob(payload)
  const { leaseId } = await claim(waitingJobState.enrolled.request(), waitingJobState.jobId, undefined)
  return { ...waitingJobState, leaseId }
}

/** Returns the completion report of a relay, with the same exit code for all nodes. */
export const completionReport = (
  enrolled: EnrolledCluster,
  leaseId: string,
  exitCode: number | null = 0,
  outcome = 'exited' as const,
) => ({ leaseId, outcome, exitCode, nodes: enrolled.relay.nodes.map(({ id }) => ({ nodeId: id, exitCode })) })

export const outputChunk = (leaseId: string, seq: number, data: string) =>
  ({ leaseId, seq, nodeId: 'node', stream: 'stdout', data }) as const

export const readJobCounters = async (caller: Caller, { cluster }: EnrolledCluster) => {
  const record = await Cluster.find(caller.organisationId, cluster.id)
  return [record?.activeJobs, record && countWaiting(record)]
}

export const readInboxItems = async (clusterId: string): Promise<string[]> =>
  (await query({ pk: keys.inbox(clusterId, '').pk })).items.map(({ sk }) => String(sk))

/** Returns the ids of the jobs that the record of the cluster lists as waiting, oldest first. */
export async function readWaitingIds({ organisationId }: Caller, clusterId: string): Promise<string[]> {
  const record = await Cluster.find(organisationId, clusterId)
  return record === undefined ? [] : allWaiting(record)
}

export const allWaiting = async (cluster: ClusterRecord): Promise<string[]> => [
  ...listedIn(cluster),
  ...(await waitingUnlisted(cluster, 500)),
]

export async function runJob(enrolled: EnrolledCluster, jobId: string, exitCode = 0) {
  const { leaseId } = await claim(enrolled.request(), jobId, undefined)
  await complete(enrolled.request(), jobId, completionReport(enrolled, leaseId, exitCode))
}

/** Stores a job with only the attributes that lists of jobs read. */
export async function storeJob(organisationId: string, status: string): Promise<keys.Key> {
  const id = newId('job')
  const key = keys.job(organisationId, id)
  await batchPut([{ ...key, id, status, ...keys.jobStatusIndexKey({ organisationId }, status) }])
  return key
}
