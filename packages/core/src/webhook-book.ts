import { type CloudEvent } from '@platform/contract/event'
import { type Book } from './books.ts'
import { now } from './clock.ts'
import { cloudEvent } from './cloud-event.ts'
import * as keys from './db/keys.ts'
import { query, transact } from './db/table.ts'
import { newDelivery, deliverySteps } from './delivery-row.ts'
import { derivedId } from './id.ts'
import { announceWebhook } from './queue.ts'
import { type OutboxRecord } from './record.ts'
import { isSubscribed, parseWebhook, wakeStep, type WebhookRow } from './webhook-row.ts'

/**
 * Turns events into deliveries: one for each webhook that has subscribed to it, with an id derived of the two, so that records
 * that are prepared twice make nothing twice.
 */

/** A transaction holds 100 writes: two for a delivery, one for the webhook. */
const deliveriesAtOnce = 49

/** Webhooks that have got something, by the records that brought it, until those are closed. */
const woken = new WeakMap<readonly OutboxRecord[], readonly WebhookRow[]>()

export const webhookBook: Book = {
  name: 'webhooks',
  /** One query, and one transaction for each webhook that has subscribed. */
  prepare: async (organisationId, records) => {
    const events = records.flatMap((record) => record.events.map((event) => cloudEvent(event, record)))
    if (events.length === 0) return
    const told = (await enabledWebhooks(organisationId))
      .map((webhook) => ({ webhook, wanted: events.filter(({ type }) => isSubscribed(webhook, type)) }))
      .filter(({ wanted }) => wanted.length > 0)
    await Promise.all(told.map(({ webhook, wanted }) => tell(webhook, wanted)))
    woken.set(
      records,
      told.map(({ webhook }) => webhook),
    )
  },
  /** One message for each webhook. One that is left alone after failures is announced when its time has come. */
  follow: async (organisationId, records) => {
    const ready = (woken.get(records) ?? []).filter(({ quietUntilMs }) => quietUntilMs <= now())
    await Promise.all(ready.map(({ id: webhookId }) => announceWebhook({ organisationId, webhookId })))
  },
}

async function enabledWebhooks(organisationId: string): Promise<WebhookRow[]> {
  const { items } = await query({ pk: keys.webhook(organisationId, '').pk })
  return items.map(parseWebhook).filter(({ isEnabled }) => isEnabled)
}

async function tell(webhook: WebhookRow, events: readonly CloudEvent[]): Promise<void> {
  for (let first = 0; first < events.length; first += deliveriesAtOnce) {
    const part = events.slice(first, first + deliveriesAtOnce)
    // One that is stored already, or a webhook that is gone, refuses them all: then each is seen to by itself.
    if (await store(webhook, part)) for (const event of part) await store(webhook, [event])
  }
}

const store = (webhook: WebhookRow, events: readonly CloudEvent[]) =>
  transact([wakeStep(webhook), ...events.flatMap((event) => deliverySteps(deliveryOf(webhook, event)))])

const deliveryOf = (webhook: WebhookRow, event: CloudEvent) =>
  newDelivery(derivedId('dlv', Date.parse(event.time), event.id, webhook.id), webhook, event)
