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
 * Works a webhook's deliveries off (D39): one worker at a time, under a lease in the webhook's row, so that a receiver that
 * hangs holds one worker and nobody else's. At least once: a worker that dies between attempt and record leaves the
 * delivery Pending, and it goes out again under the same `webhook-id`.
 */

/** No attempt is begun later than this; with the ten seconds of the last one a message takes twenty. */
const workMs = 10_000
/** Longer than a message takes. A worker that was killed holds the webhook up for no longer than this. */
const leaseMs = 30_000
const atOnce = 10
/** The longest that a message can be held back; what is due later is left to the sweep. */
const longestDelayMs = 900_000

/** A worker's webhook: `leaseId` is the worker's own. */
type Leased = WebhookRecord & { leaseId: string }

const Waiting = z.object({ pk: z.string(), sk: z.string(), deliveryId: z.string(), atMs: z.number() })
type Waiting = z.infer<typeof Waiting>

/**
 * Delivers what is due to one webhook: first attempts, then others, the earliest first. Six calls, two for each delivery, two for every further ten. Where
 * somebody else is at it one call: that worker sees what has come since before it rests.
 */
export async function drainDeliveries({ organisationId, webhookId }: WebhookReference): Promise<void> {
  const lastStartMs = now() + workMs
  const row = await findWebhook(organisationId, webhookId)
  let webhook = row && (await lease(row))
  while (webhook !== undefined) {
    const waiting = await nextWaiting(webhook)
    const isReady = webhook.isEnabled && webhook.quietUntilMs <= now()
    const due = isReady ? waiting.filter(({ atMs }) => atMs <= now()) : []
    if (due.length === 0 && (await rest(webhook, waiting[0]))) return
    for (const one of due) {
      if (now() > lastStartMs) return handOn(webhook)
      if (!(await deliver(webhook, one))) break
    }
    webhook = await stillLeased(webhook)
  }
}

/** Takes the webhook for this worker; undefined where somebody else has it. */
async function lease(row: WebhookRecord): Promise<Leased | undefined> {
  const { organisationId, id, leaseId: previous } = row
  if (previous !== undefined && row.leaseUntilMs > now()) return undefined
  const leased = { leaseId: newId('lease'), leaseUntilMs: now() + leaseMs }
  const change = { set: { ...leased, ...keys.due(id, leased.leaseUntilMs) } }
  const refusal = await transact([patch(keys.webhook(organisationId, id), change, { leaseId: unchanged(previous) })])
  return refusal ? undefined : { ...row, ...leased }
}

/** The webhook as it stands now, if it is still this worker's. */
async function stillLeased({ organisationId, id, leaseId }: Leased): Promise<Leased | undefined> {
  const row = await findWebhook(organisationId, id)
  return row?.leaseId === leaseId ? { ...row, leaseId } : undefined
}

async function nextWaiting({ organisationId, id }: WebhookRecord): Promise<Waiting[]> {
  const { items } = await query({ pk: keys.pendingDeliveriesOf(organisationId, id), limit: atOnce })
  return items.map((item) => Waiting.parse(item))
}

/** Attempts one delivery. Answers whether the next one may follow. Two calls. */
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

/** Gives the webhook back and files it for its next attempt. Answers false where something has come since it was read. */
async function rest(webhook: Leased, next: Waiting | undefined): Promise<boolean> {
  const { organisationId, id, leaseId, wakes } = webhook
  const dueAtMs = webhook.isEnabled && next !== undefined ? Math.max(next.atMs, webhook.quietUntilMs) : undefined
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

/** Leaves what is still due to the next message: this one has taken its share of time. */
async function handOn({ organisationId, id, leaseId }: Leased): Promise<void> {
  const change = { set: keys.due(id, now()), remove: ['leaseId', 'leaseUntilMs'] }
  await transact([patch(keys.webhook(organisationId, id), change, { leaseId: { is: leaseId } })])
  await enqueueWebhook({ organisationId, webhookId: id })
}
