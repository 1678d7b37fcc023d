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
import { ownEvents, recordPublished } from './published.ts'
import { type ServingModule } from './records.ts'
import { type WaitingEvent } from './pending-event.ts'

/** Hands a module events, and draws conclusions. */

/** What the handlers of a batch may take together. */
const batchMs = 10_000
/** An event that has failed so often by itself is dropped. A failure to which the module gave no answer counts for two. */
const triesLimit = 5
const [firstPauseMs, longestPauseMs] = [5000, 900_000]

/** A module that serves, and the runtime that it serves in. */
export interface DeliveryTarget {
  runtime: ModuleClient
  row: ServingModule
}

/** Hands over some events. Where any of them fails nobody knows whose fault it is: to the last of them they go one by one. */
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

/** Hands over one event. It is to blame for its failure, and for that of a module which has answered just before. */
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

/** Hands over events; those that were handled go, together with what the module has published about them. */
async function hand({ runtime, row }: DeliveryTarget, batch: readonly WaitingEvent[]) {
  const events = batch.map(({ event }) => event)
  const { handled, problem, published, failed } = await deliverEvents(runtime, row.deployment, events, batchMs)
  await failpoint('module.delivered')
  const isHandled = ({ event: { id } }: WaitingEvent) => handled.includes(id)
  const told = ownEvents(row.id, published)
  const steps = batch.filter(isHandled).map(({ sk }) => remove(keys.moduleEvent(row.id, sk)))
  if (steps.length > 0 || told.length > 0) {
    await commit(system(row.organisationId), { steps, ...(told.length > 0 && { events: told }) })
  }
  return { failed: batch.filter((each) => !isHandled(each)), problem, message: failed[0]?.message }
}

/** An event that fails by itself is tried again later, and dropped in the end. */
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
  log('error', 'A module cannot handle an event, which is dropped', {
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
  return { ...turn, failures: turn.failures + 1, quietUntilMs: now() + pauseMs }
}
