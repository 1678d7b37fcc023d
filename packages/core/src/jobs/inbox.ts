import { type ClusterRecord } from '../clusters/record.ts'
import * as keys from '../db/keys.ts'
import { create, query, remove, type WriteItem } from '../db/table.ts'
import { type JobRecord } from './record.ts'

/** The inbox lists the jobs that wait for a cluster's relay. The cluster counts them. */

type Waiting = Pick<JobRecord, 'id' | 'clusterId'>

/** Changes of the cluster's counters. */
export const enteredInbox = { waitingJobs: 1 }
export const leftInbox = (jobs: readonly Waiting[]): { waitingJobs: number } => ({ waitingJobs: -jobs.length })

export const enterInbox = ({ clusterId, id }: Waiting): WriteItem => create(keys.inbox(clusterId, id), {})
export const leaveInbox = ({ clusterId, id }: Waiting): WriteItem => remove(keys.inbox(clusterId, id))

/** Oldest first. */
export async function waitingIn({ id, waitingJobs }: ClusterRecord, limit: number): Promise<string[]> {
  if (waitingJobs <= 0 || limit === 0) return []
  const { items } = await query({ pk: keys.inbox(id, '').pk, limit })
  return items.map((item) => String(item['sk']))
}
