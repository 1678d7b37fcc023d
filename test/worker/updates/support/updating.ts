import type { Caller } from '@platform/core/caller'
import { now, shiftClock } from '@platform/core/clock'
import { commit } from '@platform/core/outbox/commit'
import * as keys from '@platform/core/db/keys'
import { get, replace, update } from '@platform/core/db/table'
import { transact } from '@platform/core/db/transact'
import { newOperation, operationLeaseMs, queueChange } from '@platform/core/operations/operation'
import { runOperation } from '@platform/core/operations/run'
import type { JobReference } from '@platform/core/aws/queues'
import {
  type InstalledRelease,
  parseUpdateState,
  rollbackSteps,
  type UpdatePlan,
  updateSteps,
} from '@platform/core/updates/record'
import * as Job from '@platform/core/jobs/job'
import { updateHandlers } from '@platform/worker/updates/handlers'
import type { UpdateTarget } from '@platform/worker/updates/target/port'
import { afterAll, afterEach, expect } from 'vitest'
import { bootstrapPlatform, newCaller } from '../../../support/fixtures.ts'
import { readPendingRecords } from '../../../core/support/outbox.ts'
import { platformFunctions, type startFeed } from './feed.ts'
import { type Behaviour, MemoryTarget } from './memory-target.ts'

export interface QueuedUpdate {
  caller: Caller
  plan: UpdatePlan
  reference: JobReference
}

export async function setUpUpdates({ released, close }: Awaited<ReturnType<typeof startFeed>>) {
  afterAll(close)
  afterEach(resetClock)
  await bootstrapPlatform()
  let count = 0
  async function newReleases(): Promise<{ older: InstalledRelease; newer: InstalledRelease }> {
    count++
    return { older: await released(`1.${count}.0`), newer: await released(`1.${count}.1`) }
  }

  /** Queues an update. The clock advances while its release bakes. */
  async function newUpdate(behaviour?: Behaviour, action: UpdatePlan['action'] = 'apply') {
    const { older, newer } = await newReleases()
    const [release, before] = action === 'apply' ? [newer, older] : [older, newer]
    const target = new MemoryTarget(before)
    target.hook = { before: advanceOnHealthCheck }
    if (behaviour !== undefined) target.behaviours.set(release.version, behaviour)
    return { target, older, newer, update: await queueUpdate({ action, release, before }) }
  }
  return { released, newReleases, newUpdate }
}

/** Locks the update state for a new job, as a request for an update does. */
export async function queueUpdate(plan: UpdatePlan, organisationId?: string): Promise<QueuedUpdate> {
  const caller = await newCaller(organisationId, 'PlatformAdmin')
  const isApply = plan.action === 'apply'
  const type = isApply ? 'PlatformUpdate' : 'PlatformRollback'
  const steps = isApply ? updateSteps : rollbackSteps
  const operation = newOperation(caller, { type, payload: { version: plan.release.version }, plan: { ...plan }, steps })
  const state = { current: JSON.stringify(plan.before), previous: JSON.stringify(plan.release), revision: 7 }
  await transact([replace(keys.updateState(), { ...state, jobId: operation.id })])
  await commit(caller, queueChange(operation))
  return { caller, plan, reference: { organisationId: caller.organisationId, jobId: operation.id } }
}

export const attempt = ({ reference }: QueuedUpdate, target: UpdateTarget, names = platformFunctions): Promise<void> =>
  runOperation(
    reference,
    updateHandlers(async () => target, names),
  )

let shiftedMs = 0
export const advance = (ms: number): void => {
  shiftedMs += ms
  shiftClock(ms)
}
export const resetClock = (): void => advance(-shiftedMs)

export const expireLease = (): void => advance(operationLeaseMs + 1)

export async function attemptRepeatedly(queued: QueuedUpdate, target: UpdateTarget): Promise<void> {
  for (let count = 0; count < 8; count++) {
    await attempt(queued, target).catch(() => undefined)
    expireLease()
  }
}

export const jobOf = ({ caller, reference }: QueuedUpdate) => Job.read(caller, reference.jobId)

/** Advances the clock at each health check, so that a release bakes in one check. */
export const advanceOnHealthCheck = async ({ name, input }: { name: string; input: readonly unknown[] }) => {
  if (name === 'invoke' && input[1] === 'health') advance(1000)
}

export const countErrors = (version: string, faults: number): Promise<unknown> =>
  update(keys.versionErrorCount(version, Math.floor(now() / 60_000)), { add: { faults } })

const endNames = new Set(['job.completed', 'job.failed', 'update.completed', 'update.failed', 'update.rolled_back'])

export const endEventsOf = async ({ caller }: QueuedUpdate) =>
  (await readPendingRecords(caller.organisationId))
    .flatMap(({ events }) => events)
    .filter(({ name }) => endNames.has(name))

export const readUpdateState = async () => parseUpdateState(await get(keys.updateState()))

/**
 * Expects that an update has ended, and that job, state, events and target agree on one release. Returns the output of
 * the job.
 */
export async function expectEnd(
  queued: QueuedUpdate,
  target: MemoryTarget,
  expected: 'Completed' | 'Failed',
): Promise<string> {
  const { release, before, action } = queued.plan
  const { status, statusReason, result } = await jobOf(queued)
  const state = await readUpdateState()
  expect([status, state.jobId]).toEqual([expected, undefined])
  const names = (await endEventsOf(queued)).map(({ name }) => name)
  const [serving, other] = expected === 'Completed' ? [release, before] : [before, release]
  expect(target.release).toMatchObject({ version: serving.version, digest: serving.digest })
  expect(state).toMatchObject({ current: serving, previous: other })
  if (expected === 'Completed') {
    expect(names).toEqual([action === 'apply' ? 'update.completed' : 'update.rolled_back', 'job.completed'])
  } else {
    expect(statusReason).toBe('update_failed')
    expect(names).toEqual(['update.failed', 'job.failed'])
    expect(result?.output).toContain(`Version ${before.version} serves.`)
  }
  return result?.output ?? ''
}

export async function expectAttempt(
  queued: QueuedUpdate,
  target: MemoryTarget,
  expected: 'Completed' | 'Failed',
): Promise<string> {
  await attempt(queued, target.port)
  return expectEnd(queued, target, expected)
}
