import * as z from 'zod'
import { now } from '../clock.ts'
import { unchanged } from '../db/expression.ts'
import * as keys from '../db/keys.ts'
import { getConsistent, patch, query, remove } from '../db/table.ts'
import { transact } from '../db/transact.ts'
import { attemptDelivery } from './delivery-attempt.ts'
import { recordAttempt } from './delivery-outcome.ts'
import { parseDelivery } from './delivery-record.ts'
import { failpoint } from '../lib/failpoint.ts'
import { newId } from '../id.ts'
import { enqueueWebhook, type WebhookReference } from '../aws/queues.ts'
import { findWebhook, parseWebhook, type WebhookRecord } from './record.ts'

/**
 * Sends a webhook's pending deliveries: one worker at a time, with a lease in the webhook's record, so that a hanging
 * receiver blocks only one worker. At least once: if a worker crashes between attempt and record, the delivery is
 * repeated with the same `webhook-id`.
 */

/** Attempts start within this time; with ten seconds for the last one a message takes twenty. */
const workMs = 10_000
/** Longer than a message takes. A crashed worker blocks the webhook no longer than this. */
const leaseMs = 30_000
const atOnce = 10
/** The longest message delay; the sweep handles later deliveries. */
const longestDelayMs = 900_000

/** A leased webhook: `leaseId` is this worker's. */
type Leased = WebhookRecord & { leaseId: string }

const Waiting = z.object({ pk: z.string(), sk: z.string(), deliveryId: z.string(), atMs: z.number() })
type Waiting = z.infer<typeof Waiting>

/**
 * Sends due deliveries of one webhook: first attempts, then retries by due time. Six calls, two per delivery, two per
 * further ten. One call if another worker has the lease: that one sees new deliveries before it releases it.
 */
export async function drainDeliveries({ organisationId, webhookId }: WebhookReference): Promise<void> {
  const lastStartMs = now() + workMs
  const row = await findWebhook(organisationId, webhookId)
  let webhook = row && (await lease(row))
  while (webhook !== undefined) {
    const waiting = await nextWaiting(webhook)
    const isReady = webhook.isEnabled && webhook.backOffUntilMs <= now()
    const due = isReady ? waiting.filter(({ atMs }) => atMs <= now()) : []
    if (due.length === 0 && (await rest(webhook, waiting[0]))) return
    for (const one of due) {
      if (now() > lastStartMs) return handOn(webhook)
      if (!(await deliver(webhook, one))) break
    }
    webhook = await stillLeased(webhook)
  }
}

/** Takes the lease; undefined if another worker has it. */
async function lease(row: WebhookRecord): Promise<Leased | undefined> {
  const { organisationId, id, leaseId: previous } = row
  if (previous !== undefined && row.leaseUntilMs > now()) return undefined
  const leased = { leaseId: newId('lease'), leaseUntilMs: now() + leaseMs }
  const change = { set: { ...leased, ...keys.due(id, leased.leaseUntilMs) } }
  const refusal = await transact([patch(keys.webhook(organisationId, id), change, { leaseId: unchanged(previous) })])
  return refusal ? undefined : { ...row, ...leased }
}

/** The current webhook, if this worker still has the lease. */
async function stillLeased({ organisationId, id, leaseId }: Leased): Promise<Leased | undefined> {
  const row = await findWebhook(organisationId, id)
  return row?.leaseId === leaseId ? { ...row, leaseId } : undefined
}

async function nextWaiting({ organisationId, id }: WebhookRecord): Promise<Waiting[]> {
  const { items } = await query({ pk: keys.pendingDeliveriesOf(organisationId, id), limit: atOnce })
  return items.map((item) => Waiting.parse(item))
}

/** Attempts one delivery. Returns whether the next one may follow. Two calls. */
async function deliver(
  { organisationId, id, leaseId }: Leased,
  { pk, sk, deliveryId, atMs }: Waiting,
): Promise<boolean> {
  const wanted = [keys.webhook(organisationId, id), keys.delivery(organisationId, id, deliveryId)]
  const [row, item] = await getConsistent(wanted)
  const webhook = row && parseWebhook(row)
  if (webhook?.leaseId !== leaseId || !webhook.isEnabled) return false
  const delivery = item && parseDelivery(item)
  if (delivery?.nextAttemptAtMs !== atMs) {
    await transact([remove({ pk, sk })])
    return true
  }
  const attempt = await attemptDelivery(webhook, delivery)
  await failpoint('webhook.attempted')
  return recordAttempt(webhook, delivery, attempt)
}

/** Releases the lease and schedules the next attempt. Returns false if deliveries arrived since it was read. */
async function rest(webhook: Leased, next: Waiting | undefined): Promise<boolean> {
  const { organisationId, id, leaseId, wakes } = webhook
  const dueAtMs = webhook.isEnabled && next !== undefined ? Math.max(next.atMs, webhook.backOffUntilMs) : undefined
  const change = {
    ...(dueAtMs !== undefined && { set: keys.due(id, dueAtMs) }),
    remove: ['leaseId', 'leaseUntilMs', ...(dueAtMs === undefined ? ['duepk', 'duesk'] : [])],
  }
  const asRead = { leaseId: { is: leaseId }, wakes: { is: wakes } }
  if (await transact([patch(keys.webhook(organisationId, id), change, asRead)])) return false
  const waitMs = (dueAtMs ?? Number.POSITIVE_INFINITY) - now()
  if (waitMs <= longestDelayMs)
    await enqueueWebhook({ organisationId, webhookId: id }, Math.ceil(Math.max(waitMs, 0) / 1000))
  return true
}

/** Leaves the remaining deliveries to the next message. */
async function handOn({ organisationId, id, leaseId }: Leased): Promise<void> {
  const change = { set: keys.due(id, now()), remove: ['leaseId', 'leaseUntilMs'] }
  await transact([patch(keys.webhook(organisationId, id), change, { leaseId: { is: leaseId } })])
  await enqueueWebhook({ organisationId, webhookId: id })
}
