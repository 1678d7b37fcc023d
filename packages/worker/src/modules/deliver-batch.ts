import { system } from '@platform/core/caller'
import { commit } from '@platform/core/outbox/commit'
import { isAhead, now } from '@platform/core/clock'
import * as keys from '@platform/core/db/keys'
import { patch, remove } from '@platform/core/db/table'
import { transact } from '@platform/core/db/transact'
import { failpoint } from '@platform/core/lib/failpoint'
import { log } from '@platform/core/log'
import { deliverEvents } from './lifecycle/events.ts'
import { probe } from './lifecycle/probe.ts'
import type { ModuleClient } from '../runtimes/port.ts'
import type { DeliveryLease, PendingEvent } from './delivery-state.ts'
import { ownEvents, recordPublished } from './lifecycle/published.ts'
import type { ServingModule } from './records.ts'

const batchLimitMs = 10_000
/** An event is dropped after this many individual failures. A failure without a valid response counts twice. */
const maxTries = 5
const [firstPauseMs, maxPauseMs] = [5000, 900_000]

export interface DeliveryTarget {
  runtime: ModuleClient
  record: ServingModule
}

/** Delivers a batch. If any event fails, the next calls deliver all events up to the last failed one individually. */
export async function deliverBatch(
  target: DeliveryTarget,
  lease: DeliveryLease,
  batch: readonly PendingEvent[],
): Promise<DeliveryLease> {
  const { failed, problem } = await deliver(target, batch)
  const lastFailed = failed.at(-1)
  if (lastFailed === undefined) return { ...lease, failures: 0 }
  const nextLease = { ...lease, carefulTo: lastFailed.sk }
  return problem === undefined ? nextLease : backOff(nextLease)
}

/** Probes the module before it delivers the event, so that a later crash counts against the event. */
export async function deliverOne(
  target: DeliveryTarget,
  lease: DeliveryLease,
  pendingEvent: PendingEvent,
): Promise<DeliveryLease> {
  const { runtime, record } = target
  const { isResponding, published } = await probe(runtime, record.deployment, manifestWithoutChecks(record))
  await recordPublished(record, published, { atMs: now(), name: 'probe' })
  if (!isResponding) return backOff(lease)
  const { failed, problem, message } = await deliver(target, [pendingEvent])
  return failed.length === 0
    ? { ...lease, failures: 0 }
    : countFailure(lease, pendingEvent, { weight: problem === undefined ? 1 : 2, message })
}

const manifestWithoutChecks = ({ release: { manifest } }: ServingModule) => ({
  ...manifest,
  spec: { ...manifest.spec, healthChecks: [] },
})

/**
 * Delivers events, and deletes the handled events in the transaction that records the events published by the module.
 */
async function deliver({ runtime, record }: DeliveryTarget, batch: readonly PendingEvent[]) {
  const events = batch.map(({ event }) => event)
  const { handled, problem, published, failed } = await deliverEvents(runtime, record.deployment, events, batchLimitMs)
  await failpoint('module.delivered')
  const isHandled = ({ event: { id } }: PendingEvent) => handled.includes(id)
  const ownPublished = ownEvents(record.id, published)
  const writes = batch.filter(isHandled).map(({ sk }) => remove(keys.moduleEvent(record.id, sk)))
  if (writes.length > 0 || ownPublished.length > 0) {
    await commit(system(record.organisationId), { writes, ...(ownPublished.length > 0 && { events: ownPublished }) })
  }
  return { failed: batch.filter((each) => !isHandled(each)), problem, message: failed[0]?.message }
}

async function countFailure(
  lease: DeliveryLease,
  { sk, event, tries }: PendingEvent,
  { weight, message }: { weight: number; message: string | undefined },
): Promise<DeliveryLease> {
  const { moduleId } = lease
  if (tries + weight < maxTries) {
    await transact([patch(keys.moduleEvent(moduleId, sk), { add: { tries: weight } })])
    return backOff(lease)
  }
  log('error', 'Module event dropped after repeated failures', {
    moduleId,
    eventId: event.id,
    type: event.type,
    reason: message,
  })
  await transact([remove(keys.moduleEvent(moduleId, sk))])
  return { ...lease, failures: 0 }
}

const pauseMsAfter = (failureCount: number): number => Math.min(firstPauseMs * 2 ** failureCount, maxPauseMs)

export const isBackingOff = ({ failures, backOffUntilMs }: DeliveryLease): boolean =>
  isAhead(backOffUntilMs, pauseMsAfter(failures - 1))

const backOff = (lease: DeliveryLease): DeliveryLease => {
  const pauseMs = pauseMsAfter(lease.failures)
  return { ...lease, failures: lease.failures + 1, backOffUntilMs: now() + pauseMs }
}
