import { isDeepStrictEqual } from 'node:util'
import type { EventOf } from '@platform/contract/event'
import { system } from '@platform/core/caller'
import { commit } from '@platform/core/outbox/commit'
import { now } from '@platform/core/clock'
import { check, replace, type Item } from '@platform/core/db/table'
import { failpoint } from '@platform/core/lib/failpoint'
import { log } from '@platform/core/log'
import {
  isInformational,
  missedLimit,
  type ModuleHealthRecord,
  type ModuleRecord,
  type StoredCheck,
  serialise,
} from '@platform/core/modules/record'
import { enqueueModuleDelivery } from '@platform/core/aws/queues'
import type { ModuleHealth } from '@platform/contract/module'
import * as keys from '@platform/core/db/keys'
import { runJob } from './lifecycle/events.ts'
import { type Probe, probe } from './lifecycle/probe.ts'
import type { ModuleRuntime } from '../runtimes/port.ts'
import { recordPublished } from './lifecycle/published.ts'
import { resumeLifecycle } from './restart.ts'
import type { ServingModule } from './records.ts'
import { dueJobs } from './job-schedule.ts'
import { hasEvents } from './delivery-state.ts'

/** Time limits of a health check and of a background job. Their sum is less than the default supervision interval. */
const probeLimitMs = 5000
const jobLimitMs = 20_000

export interface HealthCheckInput {
  record: ServingModule
  health: ModuleHealthRecord | undefined
}

const unknownHealth: ModuleHealthRecord = {
  health: 'Unknown',
  checks: [],
  missed: 0,
  missedRuns: {},
  slots: {},
  revision: 0,
}

/**
 * Checks a module once: probes it and calls its due background jobs. The module misses a check if its health endpoint
 * does not respond. A job misses a run if it fails or its previous run has not ended; runs are counted for each job,
 * because some run daily. The first write claims the slots of the jobs, so that only one of two concurrent supervision
 * runs calls the jobs.
 */
export async function checkModule(runtime: ModuleRuntime, { record, health }: HealthCheckInput): Promise<void> {
  const before = health ?? unknownHealth
  const { manifest } = record.release
  const atMs = now()
  const result = await probe(runtime, record.deployment, manifest, { timeoutMs: probeLimitMs })
  const { due, slots } = result.isResponding
    ? dueJobs(manifest.spec.backgroundJobs, before.slots, atMs)
    : noneDue(before)
  const missedCount = result.isResponding ? 0 : before.missed + 1
  // A restart may cause one missed check, so the previous results remain until `missedLimit`.
  const checks = result.isResponding || missedCount >= missedLimit ? checksOf(result, atMs) : before.checks
  const probedHealth = { ...before, checks, missed: missedCount, slots }
  const storedHealth = await storeHealth(record, before, probedHealth)
  await failpoint('module.probed')
  await recordPublished(record, result.published, { atMs, name: 'probe' })
  if (storedHealth === undefined) return
  const runs = await callJobs(
    runtime,
    record,
    due.map(({ id }) => id),
    atMs,
  )
  const after = { ...storedHealth, missedRuns: missedRunsOf(storedHealth, manifest.spec.backgroundJobs, runs) }
  if (!isDeepStrictEqual(after.missedRuns, storedHealth.missedRuns)) await storeHealth(record, storedHealth, after)
  if (result.isResponding && !result.isHealthy) await resumeLifecycle(runtime, record)
  // The message about pending events may have been lost, so it is sent again.
  if (!result.isResponding || record.subscriptions.length === 0 || !(await hasEvents(record.id))) return
  await enqueueModuleDelivery(record.organisationId, record.id)
}

/** Returns the checks of a module. If there are none, a failing health endpoint counts as an Unhealthy check. */
function checksOf({ isResponding, isHealthy, checks }: Probe, checkedAtMs: number): StoredCheck[] {
  if (isHealthy || checks.length > 0) return checks
  const description = isResponding ? 'The health endpoint reports an error.' : 'The health endpoint does not respond.'
  return [{ name: 'health', status: 'Unhealthy', tags: ['degradable'], description, durationMs: 0, checkedAtMs }]
}

/**
 * Returns the number of consecutive missed runs of each job. A failed run counts as missed, and so does a run that was
 * skipped because the previous one had not ended.
 */
function missedRunsOf(
  { missedRuns: before }: ModuleHealthRecord,
  jobs: readonly { id: string }[],
  runs: ReadonlyMap<string, string>,
): Record<string, number> {
  const counts = new Map(Object.entries(before))
  const after = jobs.map(({ id }) => {
    const outcome = runs.get(id)
    const missedCount = counts.get(id) ?? 0
    return [id, outcome === undefined ? missedCount : outcome === 'Completed' ? 0 : missedCount + 1] as const
  })
  return Object.fromEntries(after.filter(([, missedCount]) => missedCount > 0))
}

const noneDue = ({ slots }: ModuleHealthRecord) => ({ due: [], slots })

/** Stores the health and publishes its changes. Returns undefined after a concurrent supervision run or operation. */
async function storeHealth(
  record: ModuleRecord,
  before: ModuleHealthRecord,
  result: ModuleHealthRecord,
): Promise<ModuleHealthRecord | undefined> {
  const revision = before.revision + 1
  const after = { ...result, health: healthOf(result), revision }
  const expectedRevision = before.revision === 0 ? ({ absentOrAtMost: 0 } as const) : { is: before.revision }
  const conflict = await commit(system(record.organisationId), {
    writes: [
      replace(keys.moduleHealth(record.id), healthItem(after), { revision: expectedRevision }),
      // Health must not be stored for a module that was uninstalled or changed since it was read.
      check(keys.module(record.id), { updatedAtMs: { is: record.updatedAtMs } }),
    ],
    ...changeEvents(record, before, after),
  })
  return conflict === undefined ? after : undefined
}

function changeEvents(
  { id: moduleId, release: { version } }: ModuleRecord,
  before: ModuleHealthRecord,
  after: ModuleHealthRecord,
) {
  const { health } = after
  const moduleFields = { moduleId, version }
  const missedEvents = (missedCount: number, missedBefore: number, job?: { backgroundJobId: string }): EventOf[] =>
    missedCount >= missedLimit && missedBefore < missedLimit
      ? [{ name: 'module.heartbeat_missed', subject: moduleId, data: { ...moduleFields, missed: missedCount, ...job } }]
      : []
  const events = [
    ...missedEvents(after.missed, before.missed),
    ...Object.entries(after.missedRuns).flatMap(([backgroundJobId, missedCount]) =>
      missedEvents(missedCount, before.missedRuns[backgroundJobId] ?? 0, { backgroundJobId }),
    ),
  ]
  if (health !== before.health) {
    const data = { ...moduleFields, health, previousHealth: before.health }
    events.push({ name: 'module.health_changed', subject: moduleId, data })
  }
  return events.length > 0 ? { events } : {}
}

async function callJobs(runtime: ModuleRuntime, record: ServingModule, jobIds: readonly string[], atMs: number) {
  const runs = await Promise.all(
    jobIds.map(async (jobId) => {
      const { outcome, message, published } = await runJob(runtime, record.deployment, jobId, jobLimitMs)
      if (outcome !== 'Completed')
        log('warn', 'Module background job failed', {
          moduleId: record.id,
          jobId,
          outcome,
          reason: message,
        })
      await recordPublished(record, published, { atMs, name: `job ${jobId}` })
      return [jobId, outcome] as const
    }),
  )
  return new Map(runs)
}

type HealthCounts = Pick<ModuleHealthRecord, 'checks' | 'missed' | 'missedRuns'>

const missedOf = ({ missed, missedRuns }: Omit<HealthCounts, 'checks'>): number =>
  Math.max(missed, ...Object.values(missedRuns))

/** Informational checks have no effect. */
export function healthOf({ checks, ...counts }: HealthCounts): ModuleHealth {
  if (missedOf(counts) >= missedLimit) return 'Unhealthy'
  const failingChecks = checks.filter(({ status, tags }) => status !== 'Healthy' && !isInformational(tags))
  const isDown = failingChecks.some(({ status, tags }) => status === 'Unhealthy' && tags.includes('critical'))
  if (isDown) return 'Unhealthy'
  return failingChecks.length > 0 ? 'Degraded' : 'Healthy'
}

export const healthItem = (record: Omit<ModuleHealthRecord, 'health'>): Item => ({
  ...record,
  health: healthOf(record),
  checks: serialise(record.checks),
})
