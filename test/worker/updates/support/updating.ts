import { type Caller } from '@platform/core/caller'
import { now, shiftClock } from '@platform/core/clock'
import { commit } from '@platform/core/outbox/commit'
import * as keys from '@platform/core/db/keys'
import { get, replace, update } from '@platform/core/db/table'
import { transact } from '@platform/core/db/transact'
import { newOperation, operationLeaseMs, queueChange } from '@platform/core/operations/operation'
import { runOperation } from '@platform/core/operations/run'
import { type OperationReference } from '@platform/core/aws/queues'
import { parseUpdateState, rollbackSteps, type UpdatePlan, updateSteps } from '@platform/core/updates/record'
import * as Job from '@platform/core/jobs/job'
import { updateHandlers } from '@platform/worker/updates/handlers'
import { type UpdateTarget } from '@platform/worker/updates/target/port'
import { expect } from 'vitest'
import { callerOf } from '../../../support/world.ts'
import { waitingRecords } from '../../../core/support/books.ts'
import { names } from './feed.ts'
import { type MemoryTarget } from './memory-target.ts'

/** Updates as their verb leaves them to the worker. */

export interface Accepted {
  caller: Caller
  plan: UpdatePlan
  reference: OperationReference
}

/** Asks for an update: the state is locked by its job, which waits. */
export async function accept(plan: UpdatePlan, organisationId?: string): Promise<Accepted> {
  const caller = await callerOf(organisationId, 'PlatformAdmin')
  const isApply = plan.action === 'apply'
  const type = isApply ? 'PlatformUpdate' : 'PlatformRollback'
  const steps = isApply ? updateSteps : rollbackSteps
  const operation = newOperation(caller, { type, payload: { version: plan.release.version }, plan: { ...plan }, steps })
  const state = { current: JSON.stringify(plan.before), previous: JSON.stringify(plan.release), revision: 7 }
  await transact([replace(keys.updateState(), { ...state, jobId: operation.id })])
  await commit(caller, queueChange(operation))
  return { caller, plan, reference: { organisationId: caller.organisationId, jobId: operation.id } }
}

/** A worker hears of an update. */
export const work = ({ reference }: Accepted, target: UpdateTarget, platform = names): Promise<void> =>
  runOperation(
    reference,
    updateHandlers(async () => target, platform),
  )

let shiftedMs = 0
/** Time passes, for a test. */
export const later = (ms: number): void => {
  shiftedMs += ms
  shiftClock(ms)
}
/** Time is what it was before the test. */
export const clockBack = (): void => later(-shiftedMs)

/** The claim of whoever is at it runs out. */
export const leaseEnds = (): void => later(operationLeaseMs + 1)

/** Works at an update until it is over, whatever is in the way. */
export async function workOff(accepted: Accepted, target: UpdateTarget): Promise<void> {
  for (let count = 0; count < 8; count++) {
    await work(accepted, target).catch(() => undefined)
    leaseEnds()
  }
}

export const jobOf = ({ caller, reference }: Accepted) => Job.read(caller, reference.jobId)

/** Time passes for whoever watches a release: a look at its health takes as long as it is to be watched. */
export const passingTime = async ({ name, input }: { name: string; input: readonly unknown[] }): Promise<void> => {
  if (name === 'invoke' && input[1] === 'health') later(1000)
}

/** A version fails as often as real traffic has it fail. */
export const fails = (version: string, faults: number): Promise<unknown> =>
  update(keys.versionErrorCount(version, Math.floor(now() / 60_000)), { add: { faults } })

const ends = new Set(['job.completed', 'job.failed', 'update.completed', 'update.failed', 'update.rolled_back'])

export const toldOf = async ({ caller }: Accepted) =>
  (await waitingRecords(caller.organisationId)).flatMap(({ events }) => events).filter(({ name }) => ends.has(name))

export const stateNow = async () => parseUpdateState(await get(keys.updateState()))

/** The update is over, and either all of it has happened or nothing. Answers how it ended. */
export async function expectWhole(accepted: Accepted, target: MemoryTarget): Promise<string> {
  const { release, before, action } = accepted.plan
  const { status, statusReason, result } = await jobOf(accepted)
  const state = await stateNow()
  expect(state.jobId).toBeUndefined()
  const told = (await toldOf(accepted)).map(({ name }) => name)
  if (status === 'Completed') {
    expect(target.whole).toMatchObject({ version: release.version, digest: release.digest })
    expect(state).toMatchObject({ current: release, previous: before })
    expect(told).toEqual([action === 'apply' ? 'update.completed' : 'update.rolled_back', 'job.completed'])
  } else {
    expect([status, statusReason]).toEqual(['Failed', 'update_failed'])
    expect(target.whole).toMatchObject({ version: before.version, digest: before.digest })
    expect(state).toMatchObject({ current: before, previous: release })
    expect(told).toEqual(['update.failed', 'job.failed'])
    expect(result?.output).toContain(`Version ${before.version} serves.`)
  }
  return status
}
