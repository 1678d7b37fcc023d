import { setTimeout as delay } from 'node:timers/promises'
import * as Audit from '@platform/core/audit/audit'
import type { Caller } from '@platform/core/caller'
import * as Batch from '@platform/core/jobs/batches/batch'
import * as Job from '@platform/core/jobs/job'
import { forEachLimit } from '@platform/core/lib/async'
import { type EnrolledCluster, runJob, scriptJob, readWaitingIds } from '../../core/support/jobs.ts'
import { enrolledCluster, newCaller } from '../../support/fixtures.ts'

export interface Load {
  clusters: number
  /** Number of single jobs. Of every 20, two go to a relay that takes no jobs, and one of these two is cancelled. */
  jobs: number
  batches: number
  jobsInBatch: number
  auditEntries: number
}

export interface Tenant {
  caller: Caller
  clusters: readonly EnrolledCluster[]
  idle: EnrolledCluster
  batchIds: string[]
  toRun: number
  runs: Map<string, number>
  audited: Record<string, number>
}

export async function newTenant(count: number): Promise<Tenant> {
  const caller = await newCaller()
  const idleCluster = await enrolledCluster(caller)
  const clusters: EnrolledCluster[] = []
  // One after the other, because each registration changes the head of the organisation's list of clusters.
  while (clusters.length < count) clusters.push(await enrolledCluster(caller))
  const audited = { 'cluster.register': count + 1, 'relay.enroll': count + 1 }
  return { caller, clusters, idle: idleCluster, batchIds: [], toRun: 0, runs: new Map(), audited }
}

export async function submitLoad(tenant: Tenant, load: Load): Promise<void> {
  const { caller, clusters, audited } = tenant
  const clusterAt = (index: number): string => clusters[index % clusters.length]?.cluster.id ?? ''
  const count = (action: string): void => void (audited[action] = (audited[action] ?? 0) + 1)

  const submitJob = async (index: number) => {
    const isIdle = index % 20 < 2
    const { id } = await Job.submit(caller, scriptJob(isIdle ? tenant.idle.cluster.id : clusterAt(index)))
    count('job.submit')
    tenant.toRun += isIdle ? 0 : 1
    if (index % 20 !== 1) return
    await Job.cancel(caller, id)
    count('job.cancel')
  }
  const submitBatch = async (index: number) => {
    const jobs = Array.from({ length: load.jobsInBatch }, (_, index) => scriptJob(clusterAt(index)))
    // Every other batch is throttled, which takes further messages.
    const { batchId } = await Batch.submit(caller, { jobs, ...(index % 2 === 1 && { maxConcurrency: 20 }) })
    tenant.batchIds.push(batchId)
    tenant.toRun += load.jobsInBatch
    count('batch.submit')
  }
  const addAuditEntry = async (index: number) => {
    await Audit.appendEntry(caller, { action: 'note.take', resource: `note-${index}`, detail: '' })
    count('note.take')
  }
  const repeat = (times: number, task: (index: number) => Promise<void>) =>
    Array.from({ length: times }, (_, index) => ({ at: (index + 0.5) / times, run: () => task(index) }))
  const tasks = [
    ...repeat(load.jobs, submitJob),
    ...repeat(load.batches, submitBatch),
    ...repeat(load.auditEntries, addAuditEntry),
  ].toSorted((a, b) => a.at - b.at)
  await forEachLimit(2, tasks, ({ run }) => run())
}

const exitCodeOf = (jobId: string): number => ((jobId.codePointAt(jobId.length - 2) ?? 0) % 7 === 0 ? 3 : 0)

export async function runRelay(
  { runs, caller }: Tenant,
  enrolled: EnrolledCluster,
  isDone: () => boolean,
): Promise<void> {
  while (!isDone()) {
    const jobIds = await readWaitingIds(caller, enrolled.cluster.id)
    for (const id of jobIds) {
      await runJob(enrolled, id, exitCodeOf(id))
      runs.set(id, (runs.get(id) ?? 0) + 1)
    }
    if (jobIds.length === 0) await delay(20)
  }
}
