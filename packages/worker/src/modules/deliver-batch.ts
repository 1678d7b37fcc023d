import { system } from '@platform/core/caller'
import { commit } from '@platform/core/outbox/commit'
import { now } from '@platform/core/clock'
import * as keys from '@platform/core/db/keys'
import { patch, remove } from '@platform/core/db/table'
import { transact } from '@platform/core/db/transact'
import { failpoint } from '@platform/core/lib/failpoint'
import { log } from '@platform/core/log'
import { deliverEvents } from './lifecycle/events.ts'
import { probe } from './lifecycle/probe.ts'
import { type ModuleClient } from '../runtimes/port.ts'
import { type DeliveryLease } from './delivery-lease.ts'
import { ownEvents, recordPublished } from './lifecycle/published.ts'
import { type ServingModule } from './records.ts'
import { type WaitingEvent } from './pending-event.ts'

/** Delivers events to a module and evaluates the results. */

/** Time limit for all handlers of a batch. */
const batchMs = 10_000
/** An event is dropped after this many individual failures. One without a response from the module counts twice. */
const triesLimit = 5
const [firstPauseMs, longestPauseMs] = [5000, 900_000]

/** A module that serves, and the runtime that it serves in. */
export interface DeliveryTarget {
  runtime: ModuleClient
  row: ServingModule
}

/** Delivers a batch. If any event fails, all events up to the last failed one are then delivered one by one. */
export async function deliverBatch(
  served: DeliveryTarget,
  turn: DeliveryLease,
  batch: readonly WaitingEvent[],
): Promise<DeliveryLease> {
  const { failed, problem } = await hand(served, batch)
  const last = failed.at(-1)
  if (last === undefined) return { ...turn, failures: 0 }
  const careful = { ...turn, carefulTo: last.sk }
  return problem === undefined ? careful : pausing(careful)
}

/** Delivers one event. A failure counts against it, even if the module crashes, because a probe has just succeeded. */
export async function deliverOne(
  served: DeliveryTarget,
  turn: DeliveryLease,
  waiting: WaitingEvent,
): Promise<DeliveryLease> {
  const { runtime, row } = served
  const { answers, published } = await probe(runtime, row.deployment, healthOnly(row))
  await recordPublished(row, published, { atMs: now(), name: 'probe' })
  if (!answers) return pausing(turn)
  const { failed, problem, message } = await hand(served, [waiting])
  return failed.length === 0
    ? { ...turn, failures: 0 }
    : blame(turn, waiting, { by: problem === undefined ? 1 : 2, message })
}

const healthOnly = ({ release: { manifest } }: ServingModule) => ({
  ...manifest,
  spec: { ...manifest.spec, healthChecks: [] },
})

/** Delivers events. Handled events are deleted in one transaction with the events that the module has published. */
async function hand({ runtime, row }: DeliveryTarget, batch: readonly WaitingEvent[]) {
  const events = batch.map(({ event }) => event)
  const { handled, problem, published, failed } = await deliverEvents(runtime, row.deployment, events, batchMs)
  await failpoint('module.delivered')
  const isHandled = ({ event: { id } }: WaitingEvent) => handled.includes(id)
  const told = ownEvents(row.id, published)
  const writes = batch.filter(isHandled).map(({ sk }) => remove(keys.moduleEvent(row.id, sk)))
  if (writes.length > 0 || told.length > 0) {
    await commit(system(row.organisationId), { writes, ...(told.length > 0 && { events: told }) })
  }
  return { failed: batch.filter((each) => !isHandled(each)), problem, message: failed[0]?.message }
}

/** An event that fails individually is retried later, and finally dropped. */
async function blame(
  turn: DeliveryLease,
  { sk, event, tries }: WaitingEvent,
  { by, message }: { by: number; message: string | undefined },
): Promise<DeliveryLease> {
  const { moduleId } = turn
  if (tries + by < triesLimit) {
    await transact([patch(keys.moduleEvent(moduleId, sk), { add: { tries: by } })])
    return pausing(turn)
  }
  log('error', 'Module event dropped after repeated failures', {
    moduleId,
    eventId: event.id,
    type: event.type,
    reason: message,
  })
  await transact([remove(keys.moduleEvent(moduleId, sk))])
  return { ...turn, failures: 0 }
}

const pausing = (turn: DeliveryLease): DeliveryLease => {
  const pauseMs = Math.min(firstPauseMs * 2 ** turn.failures, longestPauseMs)
  return { ...turn, failures: turn.failures + 1, backOffUntilMs: now() + pauseMs }
}
