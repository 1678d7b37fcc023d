import { type EventOf } from '@platform/contract/event'
import { system } from '@platform/core/caller'
import { commit } from '@platform/core/change'
import { now } from '@platform/core/clock'
import * as keys from '@platform/core/db/keys'
import { check, replace } from '@platform/core/db/table'
import { failpoint } from '@platform/core/failpoint'
import { log } from '@platform/core/log'
import { type ModuleHealthRow, type ModuleRow } from '@platform/core/module-row'
import { announceModule } from '@platform/core/queue'
import { runJob } from '../lifecycle/jobs.ts'
import { probe } from '../lifecycle/probe.ts'
import { type ModuleRuntime } from '../runtime/port.ts'
import { healthItem, healthOf, missedLimit } from './health-item.ts'
import { tellPublished } from './published.ts'
import { leadOn } from './reload.ts'
import { type ServingModule } from './rows.ts'
import { dueJobs } from './slots.ts'
import { hasEvents } from './waiting-event.ts'

/** What each health check, and each background job, may take. Together they leave a tick room for the next one. */
const probeMs = 5000
const jobMs = 20_000

/** A module, and how it stood. */
export interface Beating {
  row: ServingModule
  /** As the last beat left it. */
  health: ModuleHealthRow | undefined
}

const unknown: ModuleHealthRow = { health: 'Unknown', checks: [], missed: 0, slots: {}, revision: 0 }

/**
 * One beat of a module (D44): probes it and calls the jobs that are due; it is missed where the health endpoint does not
 * answer, or a job fails or has not ended since its last call. One small write, which claims the slots of the jobs, so that of
 * two ticks at once one calls them; a second one where a job changes how the module stands. One call more where it has
 * subscribed to events.
 */
export async function beat(runtime: ModuleRuntime, { row, health }: Beating): Promise<void> {
  const before = health ?? unknown
  const { manifest } = row.release
  const atMs = now()
  const found = await probe(runtime, row.deployment, manifest, { timeoutMs: probeMs })
  const { due, slots } = found.answers ? dueJobs(manifest.spec.backgroundJobs, before.slots, atMs) : idle(before)
  // What a job has to do with a beat shows when it has ended: until then those missed before stay missed.
  const missed = found.answers ? (due.length > 0 ? before.missed : 0) : before.missed + 1
  // One beat without an answer may be a restart: what was known before counts still.
  const checks = found.answers || missed >= missedLimit ? found.checks : before.checks
  const probed = { ...before, checks, missed, slots }
  const first = await write(row, before, probed)
  await failpoint('module.probed')
  await tellPublished(row, found.published, { atMs, name: 'probe' })
  if (first === undefined) return
  const runs = await callJobs(
    runtime,
    row,
    due.map(({ id }) => id),
    atMs,
  )
  // One whose last run has not ended did not run either.
  const isMissed = runs.some((outcome) => outcome !== 'Completed')
  const after = { ...first, missed: isMissed ? before.missed + 1 : due.length > 0 ? 0 : missed }
  if (after.missed !== first.missed) await write(row, first, after)
  if (found.answers && !found.isHealthy) await leadOn(runtime, row)
  // A message that told of waiting events may have been lost.
  if (!found.answers || row.subscriptions.length === 0 || !(await hasEvents(row.id))) return
  await announceModule(row.organisationId, row.id)
}

const idle = ({ slots }: ModuleHealthRow) => ({ due: [], slots })

/** Writes how a module stands, and tells what has changed; undefined where another tick, or an operation, was faster. */
async function write(
  row: ModuleRow,
  before: ModuleHealthRow,
  found: ModuleHealthRow,
): Promise<ModuleHealthRow | undefined> {
  const revision = before.revision + 1
  const after = { ...found, health: healthOf(found.checks, found.missed), revision }
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

function told({ id: moduleId, release: { version } }: ModuleRow, before: ModuleHealthRow, after: ModuleHealthRow) {
  const { health, missed } = after
  const about = { moduleId, version }
  const events: EventOf[] = []
  if (missed === missedLimit && before.missed < missedLimit) {
    events.push({ name: 'module.heartbeat_missed', subject: moduleId, data: { ...about, missed } })
  }
  if (health !== before.health) {
    const data = { ...about, health, previousHealth: before.health }
    events.push({ name: 'module.health_changed', subject: moduleId, data })
  }
  return events.length > 0 ? { events } : {}
}

async function callJobs(runtime: ModuleRuntime, row: ServingModule, jobIds: readonly string[], atMs: number) {
  return Promise.all(
    jobIds.map(async (jobId) => {
      const { outcome, message, published } = await runJob(runtime, row.deployment, jobId, jobMs)
      if (outcome !== 'Completed')
        log('warn', 'A background job of a module did not run well', {
          moduleId: row.id,
          jobId,
          outcome,
          reason: message,
        })
      await tellPublished(row, published, { atMs, name: `job ${jobId}` })
      return outcome
    }),
  )
}
