import { now } from '@platform/core/clock'
import { enqueueModuleDelivery } from '@platform/core/aws/queues'
import { type ModuleClient } from '../runtimes/port.ts'
import { releaseDelivery, acquireDelivery, type DeliveryLease } from './delivery-lease.ts'
import { deliverBatch, deliverOne, type DeliveryTarget } from './deliver-batch.ts'
import { findModule, hasDeployment } from './records.ts'
import { moduleClient } from './client.ts'
import { forgetEvents, hasEvents, nextEvents } from './pending-event.ts'

/**
 * Delivers pending events to modules (D37): in order, at least once, by one worker at a time for each module. A failing
 * module is paused with increasing backoff, and does not delay other modules.
 */

/** No batch starts after this time: a function has 30 seconds, and a batch may take ten. */
const workMs = 10_000

/**
 * Delivers the pending events of a module. Five calls, and two for every 50 events. Three calls if another worker holds
 * the lease; no delivery if the module does not serve.
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
  const isQuiet = turn.backOffUntilMs > now()
  const after = isQuiet ? turn : await handOver({ runtime: await pick(), row }, turn)
  await releaseDelivery(after)
  // The worker that started the backoff has sent the message that ends it.
  if (isQuiet) return
  // Messages about later events were acknowledged while this worker held the lease.
  const waitSeconds = Math.ceil(Math.max(after.backOffUntilMs - now(), 0) / 1000)
  if (await hasEvents(moduleId)) await enqueueModuleDelivery(row.organisationId, moduleId, waitSeconds)
}

async function handOver(served: DeliveryTarget, turn: DeliveryLease): Promise<DeliveryLease> {
  const untilMs = now() + workMs
  let current = turn
  while (current.backOffUntilMs <= now() && now() < untilMs) {
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
