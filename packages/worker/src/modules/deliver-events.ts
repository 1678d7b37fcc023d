import { elapsedMs, now } from '@platform/core/clock'
import { enqueueModuleDelivery } from '@platform/core/aws/queues'
import type { ModuleClient } from '../runtimes/port.ts'
import {
  releaseDelivery,
  acquireDelivery,
  type DeliveryLease,
  deleteEvents,
  hasEvents,
  nextEvents,
} from './delivery-state.ts'
import { deliverBatch, deliverOne, isBackingOff, type DeliveryTarget } from './deliver-batch.ts'
import { findModule, hasDeployment } from './records.ts'
import { moduleClient } from './client.ts'

/**
 * Delivers pending events to modules: in order, at least once, by one worker at a time for each module. A failing
 * module is paused with increasing backoff, and does not delay other modules.
 */

/** No batch starts after this time: a function has 30 seconds, and a batch may take ten. */
const deliveryLimitMs = 10_000

/**
 * Delivers the pending events of a module, or deletes them if the module does not exist. Delivers nothing while the
 * module does not serve requests or is backing off, or while another worker holds the lease.
 */
export async function deliverPending(
  moduleId: string,
  openClient: () => Promise<ModuleClient> = moduleClient,
): Promise<void> {
  const record = await findModule(moduleId)
  if (record === undefined) return deleteEvents(moduleId)
  if (!hasDeployment(record)) return
  const lease = await acquireDelivery(moduleId)
  if (lease === undefined) return
  const hasToWait = isBackingOff(lease)
  const finalLease = hasToWait ? lease : await deliverWhileLeased({ runtime: await openClient(), record }, lease)
  await releaseDelivery(finalLease)
  // The worker that started the backoff has sent the message that ends it.
  if (hasToWait) return
  // Messages about later events may have been acknowledged while this worker held the lease, so it enqueues another
  // message.
  const waitSeconds = Math.ceil(Math.max(finalLease.backOffUntilMs - now(), 0) / 1000)
  if (await hasEvents(moduleId)) await enqueueModuleDelivery(record.organisationId, moduleId, waitSeconds)
}

async function deliverWhileLeased(target: DeliveryTarget, lease: DeliveryLease): Promise<DeliveryLease> {
  const untilMs = elapsedMs() + deliveryLimitMs
  let currentLease = lease
  while (!isBackingOff(currentLease) && elapsedMs() < untilMs) {
    const pendingEvents = await nextEvents(target.record)
    if (pendingEvents === undefined) break
    const [firstEvent] = pendingEvents
    if (firstEvent === undefined) continue
    currentLease =
      firstEvent.sk <= currentLease.carefulTo
        ? await deliverOne(target, currentLease, firstEvent)
        : await deliverBatch(target, currentLease, pendingEvents)
  }
  return currentLease
}
