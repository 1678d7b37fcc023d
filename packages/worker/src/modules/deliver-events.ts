import { now } from '@platform/core/clock'
import { enqueueModuleDelivery } from '@platform/core/aws/queues'
import { type ModuleClient } from '../runtimes/port.ts'
import { releaseDelivery, acquireDelivery, type DeliveryLease } from './delivery-lease.ts'
import { deliverBatch, deliverOne, type DeliveryTarget } from './deliver-batch.ts'
import { findModule, hasDeployment } from './records.ts'
import { moduleClient } from './client.ts'
import { forgetEvents, hasEvents, nextEvents } from './pending-event.ts'

/**
 * Hands modules the events that wait for them (D37): in order, at least once, one worker at a time for each module. One that
 * fails is left alone for a while, longer each time, and holds up nobody else.
 */

/** No batch is begun later than this: a function has 30 seconds, and a batch may take ten. */
const workMs = 10_000

/**
 * Hands a module what waits for it. Five calls, and two for every 50 events. Where somebody else is at it three, and nothing
 * where the module does not run.
 */
export async function deliverWaiting(
  moduleId: string,
  pick: () => Promise<ModuleClient> = moduleClient,
): Promise<void> {
  const row = await findModule(moduleId)
  if (row === undefined) return forgetEvents(moduleId)
  if (!hasDeployment(row)) return
  const turn = await acquireDelivery(moduleId)
  if (turn === undefined) return
  const isQuiet = turn.quietUntilMs > now()
  const after = isQuiet ? turn : await handOver({ runtime: await pick(), row }, turn)
  await releaseDelivery(after)
  // Whoever has begun the quiet has sent the message that ends it.
  if (isQuiet) return
  // What has come since the last look had its message answered while the turn was taken.
  const waitSeconds = Math.ceil(Math.max(after.quietUntilMs - now(), 0) / 1000)
  if (await hasEvents(moduleId)) await enqueueModuleDelivery(row.organisationId, moduleId, waitSeconds)
}

async function handOver(served: DeliveryTarget, turn: DeliveryLease): Promise<DeliveryLease> {
  const untilMs = now() + workMs
  let current = turn
  while (current.quietUntilMs <= now() && now() < untilMs) {
    const waiting = await nextEvents(turn.moduleId)
    if (waiting === undefined) break
    const [first] = waiting
    if (first === undefined) continue
    current =
      first.sk <= current.carefulTo
        ? await deliverOne(served, current, first)
        : await deliverBatch(served, current, waiting)
  }
  return current
}
