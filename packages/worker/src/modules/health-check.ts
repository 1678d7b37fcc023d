import { isDeepStrictEqual } from 'node:util'
import { type EventOf } from '@platform/contract/event'
import { system } from '@platform/core/caller'
import { commit } from '@platform/core/outbox/commit'
import { now } from '@platform/core/clock'
import * as keys from '@platform/core/db/keys'
import { check, replace } from '@platform/core/db/table'
import { failpoint } from '@platform/core/lib/failpoint'
import { log } from '@platform/core/log'
import { type ModuleHealthRecord, type ModuleRecord, type StoredCheck } from '@platform/core/modules/record'
import { enqueueModuleDelivery } from '@platform/core/aws/queues'
import { runJob } from './lifecycle/jobs.ts'
import { type Probe, probe } from './lifecycle/probe.ts'
import { type ModuleRuntime } from '../runtimes/port.ts'
import { healthItem, healthOf, missedLimit, missedOf } from './health-item.ts'
import { recordPublished } from './published.ts'
import { resumeLifecycle } from './restart.ts'
import { type ServingModule } from './records.ts'
import { dueJobs } from './job-schedule.ts'
import { hasEvents } from './pending-event.ts'

/** What each health check, and each background job, may take. Together they leave a tick room for the next one. */
const probeMs = 5000
const jobMs = 20_000

/** A module, and how it stood. */
export interface HealthCheckInput {
  row: ServingModule
  /** As the last beat left it. */
  health: ModuleHealthRecord | undefined
}

const unknown: ModuleHealthRecord = {
  health: 'Unknown',
  checks: [],
  missed: 0,
  missedRuns: {},
  slots: {},
  revision: 0,
}

/**
 * One beat of a module (D44): probes it and calls the jobs that are due. It misses one where the health endpoint does not
 * answer; a job misses one where it fails, or has not ended since its last call, and counts by itself: some run daily. One small write, which claims the slots of the jobs, so that of
 * two ticks at once one calls them; a second one where a job changes how the module stands. One call more where it has
 * subscribed to events.
 */
export async function checkModule(runtime: ModuleRuntime, { row, health }: HealthCheckInput): Promise<void> {
  const before = health ?? unknown
  const { manifest } = row.release
  const atMs = now()
  const found = await probe(runtime, row.deployment, manifest, { timeoutMs: probeMs })
  const { due, slots } = found.answers ? dueJobs(manifest.spec.backgroundJobs, before.slots, atMs) : idle(before)
  const missed = found.answers ? 0 : before.missed + 1
  // One beat without an answer may be a restart: what was known before counts still.
  const checks = found.answers || missed >= missedLimit ? checksOf(found, atMs) : before.checks
  const probed = { ...before, checks, missed, slots }
  const first = await write(row, before, probed)
  await failpoint('module.probed')
  await recordPublished(row, found.published, { atMs, name: 'probe' })
  if (first === undefined) return
  const runs = await callJobs(
    runtime,
    row,
    due.map(({ id }) => id),
    atMs,
  )
  const after = { ...first, missedRuns: missedRunsOf(first, manifest.spec.backgroundJobs, runs) }
  if (!isDeepStrictEqual(after.missedRuns, first.missedRuns)) await write(row, first, after)
  if (found.answers && !found.isHealthy) await resumeLifecycle(runtime, row)
  // A message that told of waiting events may have been lost.
  if (!found.answers || row.subscriptions.length === 0 || !(await hasEvents(row.id))) return
  await enqueueModuleDelivery(row.organisationId, row.id)
}

/** A module that declares no checks is as well as its health endpoint says. */
function checksOf({ answers, isHealthy, checks }: Probe, checkedAtMs: number): StoredCheck[] {
  if (isHealthy || checks.length > 0) return checks
  const description = answers
    ? 'The health endpoint answers that it is not well.'
    : 'The health endpoint does not answer.'
  return [{ name: 'health', status: 'Unhealthy', tags: ['degradable'], description, durationMs: 0, checkedAtMs }]
}

/** The missed runs of the jobs that there are; one whose last run has not ended did not run either. */
function missedRunsOf(
  { missedRuns: before }: ModuleHealthRecord,
  jobs: readonly { id: string }[],
  runs: ReadonlyMap<string, string>,
): Record<string, number> {
  const counts = new Map(Object.entries(before))
  const after = jobs.map(({ id }) => {
    const outcome = runs.get(id)
    const missed = counts.get(id) ?? 0
    return [id, outcome === undefined ? missed : outcome === 'Completed' ? 0 : missed + 1] as const
  })
  return Object.fromEntries(after.filter(([, missed]) => missed > 0))
}

const idle = ({ slots }: ModuleHealthRecord) => ({ due: [], slots })

/** Writes how a module stands, and tells what has changed; undefined where another tick, or an operation, was faster. */
async function write(
  row: ModuleRecord,
  before: ModuleHealthRecord,
  found: ModuleHealthRecord,
): Promise<ModuleHealthRecord | undefined> {
  const revision = before.revision + 1
  const after = { ...found, health: healthOf(found), revision }
  const isAsRead = before.revision === 0 ? ({ absentOrAtMost: 0 } as const) : { is: before.revision }
  const refusal = await commit(system(row.organisationId), {
    steps: [
      replace(keys.moduleHealth(row.id), healthItem(after), { revision: isAsRead }),
      // What is uninstalled does not come back, and what takes its place says itself how it is.
      check(keys.module(row.id), { updatedAtMs: { is: row.updatedAtMs } }),
    ],
    ...told(row, before, after),
  })
  return refusal === undefined ? after : undefined
}

function told(
  { id: moduleId, release: { version } }: ModuleRecord,
  before: ModuleHealthRecord,
  after: ModuleHealthRecord,
) {
  const { health } = after
  const missed = missedOf(after)
  const about = { moduleId, version }
  const events: EventOf[] = []
  if (missed >= missedLimit && missedOf(before) < missedLimit) {
    events.push({ name: 'module.heartbeat_missed', subject: moduleId, data: { ...about, missed } })
  }
  if (health !== before.health) {
    const data = { ...about, health, previousHealth: before.health }
    events.push({ name: 'module.health_changed', subject: moduleId, data })
  }
  return events.length > 0 ? { events } : {}
}

/** Calls jobs, all at once; answers how each run ended. */
async function callJobs(runtime: ModuleRuntime, row: ServingModule, jobIds: readonly string[], atMs: number) {
  const runs = await Promise.all(
    jobIds.map(async (jobId) => {
      const { outcome, message, published } = await runJob(runtime, row.deployment, jobId, jobMs)
      if (outcome !== 'Completed')
        log('warn', 'A background job of a module did not run well', {
          moduleId: row.id,
          jobId,
          outcome,
          reason: message,
        })
      await recordPublished(row, published, { atMs, name: `job ${jobId}` })
      return [jobId, outcome] as const
    }),
  )
  return new Map(runs)
}
