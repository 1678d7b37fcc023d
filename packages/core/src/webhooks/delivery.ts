import * as z from 'zod'
import { elapsedMs, isAhead, now } from '../clock.ts'
import { unchangedCondition } from '../db/expression.ts'
import * as keys from '../db/keys.ts'
import { getConsistent, patch, query, remove } from '../db/table.ts'
import { transact } from '../db/transact.ts'
import { attemptDelivery } from './delivery-attempt.ts'
import { isBackingOff, recordAttempt } from './delivery-outcome.ts'
import { parseDelivery } from './delivery-record.ts'
import { failpoint } from '../lib/failpoint.ts'
import { newId } from '../id.ts'
import { enqueueWebhook, type WebhookReference } from '../aws/queues.ts'
import { findWebhook, parseWebhook, type WebhookRecord } from './record.ts'

/**
 * One worker at a time holds the lease in the webhook's record, so that a receiver that hangs blocks only one worker.
 * Delivery is at least once: if a worker crashes before it records an attempt, the attempt is repeated with the same
 * `webhook-id`.
 */

/** No attempt starts after this time. The last one may take ten seconds more. */
const maxWorkMs = 10_000
/** Exceeds the processing time of a message. A crashed worker blocks the webhook for at most this time. */
const leaseMs = 30_000
const pageSize = 10
/** The longest delay of a message; the sweep handles later deliveries. */
const maxDelayMs = 900_000

type LeasedWebhook = WebhookRecord & { leaseId: string }

const PendingDelivery = z.object({
  pk: z.string(),
  sk: z.string(),
  deliveryId: z.string(),
  atMs: z.number(),
  pauseMs: z.number().default(0),
  clusterId: z.string().optional(),
})
type PendingDelivery = z.infer<typeof PendingDelivery>

const isWaiting = ({ atMs, pauseMs }: PendingDelivery): boolean => isAhead(atMs, pauseMs)

/** Sends first attempts before retries, which are sorted by due time. */
export async function drainDeliveries({ organisationId, webhookId }: WebhookReference): Promise<void> {
  const lastStartMs = elapsedMs() + maxWorkMs
  const record = await findWebhook(organisationId, webhookId)
  let webhook = record && (await acquireLease(record))
  while (webhook !== undefined) {
    const pendingDeliveries = await nextPending(webhook)
    const isReady = webhook.isEnabled && !isBackingOff(webhook)
    const dueDeliveries = isReady ? pendingDeliveries.filter((delivery) => !isWaiting(delivery)) : []
    if (dueDeliveries.length === 0 && (await releaseLease(webhook, pendingDeliveries[0]))) return
    for (const delivery of dueDeliveries) {
      if (elapsedMs() > lastStartMs) return continueLater(webhook)
      if (!(await deliver(webhook, delivery))) break
    }
    webhook = await refreshLeased(webhook)
  }
}

async function acquireLease(record: WebhookRecord): Promise<LeasedWebhook | undefined> {
  const { organisationId, id, leaseId: oldLeaseId } = record
  if (oldLeaseId !== undefined && isAhead(record.leaseUntilMs, leaseMs)) return undefined
  const leaseFields = { leaseId: newId('lease'), leaseUntilMs: now() + leaseMs }
  const change = { set: { ...leaseFields, ...keys.dueIndexKeys(id, leaseFields.leaseUntilMs) } }
  const failure = await transact([
    patch(keys.webhook(organisationId, id), change, { leaseId: unchangedCondition(oldLeaseId) }),
  ])
  return failure ? undefined : { ...record, ...leaseFields }
}

async function refreshLeased({ organisationId, id, leaseId }: LeasedWebhook): Promise<LeasedWebhook | undefined> {
  const record = await findWebhook(organisationId, id)
  return record?.leaseId === leaseId ? { ...record, leaseId } : undefined
}

async function nextPending({ organisationId, id }: WebhookRecord): Promise<PendingDelivery[]> {
  const { items } = await query({ pk: keys.pendingDeliveriesOf(organisationId, id), limit: pageSize })
  return items.map((item) => PendingDelivery.parse(item))
}

/** Returns whether the worker may continue with the next delivery. */
async function deliver(
  { organisationId, id, leaseId }: LeasedWebhook,
  { pk, sk, deliveryId, atMs, clusterId }: PendingDelivery,
): Promise<boolean> {
  const deliveryKey = keys.delivery(organisationId, id, deliveryId)
  const [record, item, cluster] = await getConsistent([
    keys.webhook(organisationId, id),
    deliveryKey,
    ...(clusterId === undefined ? [] : [keys.cluster(organisationId, clusterId)]),
  ])
  const webhook = record && parseWebhook(record)
  if (webhook?.leaseId !== leaseId || !webhook.isEnabled) return false
  if (clusterId !== undefined && cluster === undefined) {
    await transact([remove({ pk, sk }), remove(deliveryKey)])
    return true
  }
  const delivery = item && parseDelivery(item)
  if (delivery?.nextAttemptAtMs !== atMs) {
    await transact([remove({ pk, sk })])
    return true
  }
  const attempt = await attemptDelivery(webhook, delivery)
  await failpoint('webhook.attempted')
  return recordAttempt(webhook, delivery, attempt)
}

/**
 * Also schedules the next attempt. Returns false, without a change, if the lease was lost or deliveries arrived since
 * the webhook was read.
 */
async function releaseLease(webhook: LeasedWebhook, nextDelivery: PendingDelivery | undefined): Promise<boolean> {
  const { organisationId, id, leaseId, wakes } = webhook
  const endsOfWaits = [
    ...(nextDelivery && isWaiting(nextDelivery) ? [nextDelivery.atMs] : []),
    ...(isBackingOff(webhook) ? [webhook.backOffUntilMs] : []),
  ]
  const dueAtMs = webhook.isEnabled && nextDelivery !== undefined ? Math.max(now(), ...endsOfWaits) : undefined
  const change = {
    ...(dueAtMs !== undefined && { set: keys.dueIndexKeys(id, dueAtMs) }),
    remove: ['leaseId', 'leaseUntilMs', ...(dueAtMs === undefined ? ['duepk', 'duesk'] : [])],
  }
  const condition = { leaseId: { is: leaseId }, wakes: { is: wakes } }
  if (await transact([patch(keys.webhook(organisationId, id), change, condition)])) return false
  const waitMs = (dueAtMs ?? Number.POSITIVE_INFINITY) - now()
  if (waitMs <= maxDelayMs)
    await enqueueWebhook({ organisationId, webhookId: id }, Math.ceil(Math.max(waitMs, 0) / 1000))
  return true
}

async function continueLater({ organisationId, id, leaseId }: LeasedWebhook): Promise<void> {
  const change = { set: keys.dueIndexKeys(id, now()), remove: ['leaseId', 'leaseUntilMs'] }
  await transact([patch(keys.webhook(organisationId, id), change, { leaseId: { is: leaseId } })])
  await enqueueWebhook({ organisationId, webhookId: id })
}
