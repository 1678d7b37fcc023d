import { setTimeout as delay } from 'node:timers/promises'
import * as Audit from '@platform/core/audit/audit'
import * as Batch from '@platform/core/jobs/batches/batch'
import { type Caller } from '@platform/core/caller'
import * as Job from '@platform/core/jobs/job'
import { forEachLimit, chunk } from '@platform/core/lib/async'
import { inboxOf, runJob, script, type World } from '../../test/core/support/jobs.ts'
import { callerOf, enrolledCluster } from '../../test/support/world.ts'

/** An organisation that is busy: jobs alone and in batches, notes in the audit trail, and relays that run what arrives. */

/** How much one does. */
export interface Load {
  clusters: number
  /** Jobs alone: of 20 one waits for a relay that never comes, and one is cancelled while it does. */
  jobs: number
  batches: number
  jobsInBatch: number
  /** Notes in the audit trail. */
  notes: number
}

/** What an organisation has asked for. */
export interface Tenant {
  caller: Caller
  worlds: readonly World[]
  /** A cluster whose relay takes no jobs. */
  idle: World
  batchIds: string[]
  /** How many jobs relays have to run. */
  toRun: number
  /** How often each was run. */
  runs: Map<string, number>
  /** Entries that the audit trail has to have, by action. */
  audited: Record<string, number>
}

export async function newTenant(clusters: number): Promise<Tenant> {
  const caller = await callerOf()
  const idle = await enrolledCluster(caller)
  const worlds: World[] = []
  // One after the other: they all change the head of one list.
  while (worlds.length < clusters) worlds.push(await enrolledCluster(caller))
  const audited = { 'cluster.register': clusters + 1, 'relay.enroll': clusters + 1 }
  return { caller, worlds, idle, batchIds: [], toRun: 0, runs: new Map(), audited }
}

const count = (tenant: Tenant, action: string): void => {
  tenant.audited[action] = (tenant.audited[action] ?? 0) + 1
}

/** Asks for all of a load. */
export async function ask(tenant: Tenant, load: Load): Promise<void> {
  const { caller, worlds } = tenant
  const clusterAt = (index: number): string => worlds[index % worlds.length]?.cluster.id ?? ''
  const asking = [
    ...Array.from({ length: load.jobs }, (_, index) => () => askForJob(tenant, clusterAt(index), index)),
    ...Array.from({ length: load.notes }, (_, index) => async () => {
      await Audit.appendEntry(caller, { action: 'note.take', resource: `note-${index}`, detail: '' })
      count(tenant, 'note.take')
    }),
    ...Array.from({ length: load.batches }, (_, index) => async () => {
      const jobs = Array.from({ length: load.jobsInBatch }, (__, place) => script(clusterAt(place)))
      // Every other batch lets its jobs go by and by, which takes further messages.
      const { batchId } = await Batch.submit(caller, { jobs, ...(index % 2 === 1 && { maxConcurrency: 20 }) })
      tenant.batchIds.push(batchId)
      tenant.toRun += load.jobsInBatch
      count(tenant, 'batch.submit')
    }),
  ]
  const parts = chunk(inTurns(asking, load.batches + 1), 1)
  await forEachLimit(2, parts, async ([one]) => one?.())
}

/** Takes from different places of a list in turn, so that what comes late in it is not done last. */
const inTurns = <Item>(items: readonly Item[], strides: number): Item[] =>
  Array.from({ length: strides }, (_, first) => items.filter((__, index) => index % strides === first)).flat()

async function askForJob(tenant: Tenant, clusterId: string, index: number): Promise<void> {
  const { caller, idle } = tenant
  const isLeft = index % 20 < 2
  const { id } = await Job.submit(caller, script(isLeft ? idle.cluster.id : clusterId))
  count(tenant, 'job.submit')
  tenant.toRun += isLeft ? 0 : 1
  if (index % 20 !== 1) return
  await Job.cancel(caller, id)
  count(tenant, 'job.cancel')
}

/** One of seven fails. */
const exitCodeOf = (jobId: string): number => ((jobId.codePointAt(jobId.length - 2) ?? 0) % 7 === 0 ? 3 : 0)

/** A relay that runs whatever arrives in its inbox, until it is told that all has arrived. */
export async function relay({ runs }: Tenant, world: World, isOver: () => boolean): Promise<void> {
  while (!isOver()) {
    const waiting = await inboxOf(world.cluster.id)
    for (const id of waiting) {
      await runJob(world, id, exitCodeOf(id))
      runs.set(id, (runs.get(id) ?? 0) + 1)
    }
    if (waiting.length === 0) await delay(20)
  }
}
