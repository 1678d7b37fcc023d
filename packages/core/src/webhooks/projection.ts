import type { CloudEvent } from '@platform/contract/event'
import { type Labels, Labels as EventLabels } from '@platform/contract/label'
import { labelsOf, matchesText } from '../labels/labels.ts'
import type { Projection } from '../outbox/run-projections.ts'
import { cloudEvent } from './cloud-event.ts'
import { isBackingOff } from './delivery-outcome.ts'
import * as keys from '../db/keys.ts'
import { getMany, query } from '../db/table.ts'
import { transact } from '../db/transact.ts'
import { type DeliveryRecord, deliveryWrites, deliveryKey, newDelivery } from './delivery-record.ts'
import { derivedId, isId } from '../id.ts'
import { forEachLimit, chunk } from '../lib/async.ts'
import { enqueueWebhook } from '../aws/queues.ts'
import type { OutboxRecord } from '../outbox/record.ts'
import { isSubscribed, parseWebhook, wakeWrite, type WebhookRecord } from './record.ts'

/** The ids of deliveries are derived, so that a repeated projection has no effect. */

/** A transaction has at most 100 writes: two per delivery, and one for the webhook. */
const deliveriesPerTransaction = 49
/** Limits the load that one organisation with many webhooks causes. */
const maxConcurrentWebhooks = 3

/** Passes the webhooks with new deliveries from `beforeCommit` to `afterCommit`. */
const pendingWebhooks = new WeakMap<readonly OutboxRecord[], readonly WebhookRecord[]>()

export const webhookProjection: Projection = {
  name: 'webhooks',
  beforeCommit: async (organisationId, records) => {
    const events = records.flatMap((record) => record.events.map((event) => cloudEvent(event, record)))
    if (events.length === 0) return
    const webhooks = await enabledWebhooks(organisationId)
    const labels = await labelsOfEvents(organisationId, webhooks, events)
    const subscriptions = webhooks
      .map((webhook) => ({ webhook, matchingEvents: events.filter((event) => isWanted(webhook, event, labels)) }))
      .filter(({ matchingEvents }) => matchingEvents.length > 0)
    await forEachLimit(maxConcurrentWebhooks, subscriptions, ({ webhook, matchingEvents }) =>
      createDeliveries(webhook, matchingEvents),
    )
    pendingWebhooks.set(
      records,
      subscriptions.map(({ webhook }) => webhook),
    )
  },
  afterCommit: async (organisationId, records) => {
    const readyWebhooks = (pendingWebhooks.get(records) ?? []).filter((webhook) => !isBackingOff(webhook))
    await Promise.all(readyWebhooks.map(({ id: webhookId }) => enqueueWebhook({ organisationId, webhookId })))
  },
}

async function enabledWebhooks(organisationId: string): Promise<WebhookRecord[]> {
  const { items } = await query({ pk: keys.webhook(organisationId, '').pk })
  return items.map(parseWebhook).filter(({ isEnabled }) => isEnabled)
}

/**
 * Returns the labels of the clusters of events, or none if no webhook has a selector. The event of a removal contains
 * the last labels, which also apply to earlier events of the cluster.
 */
async function labelsOfEvents(
  organisationId: string,
  webhooks: readonly WebhookRecord[],
  events: readonly CloudEvent[],
): Promise<ReadonlyMap<string, Labels>> {
  if (webhooks.every(({ selector }) => selector === undefined)) return new Map()
  const ids = new Set(events.flatMap(({ data }) => clusterOf(data) ?? []))
  const labels = await labelsOf(organisationId, [...ids], { mayBeStale: false })
  for (const { data } of events) {
    const { success, data: eventLabels } = EventLabels.safeParse(data['labels'])
    const clusterId = clusterOf(data)
    if (success && clusterId !== undefined && !labels.has(clusterId)) labels.set(clusterId, eventLabels)
  }
  return labels
}

const clusterOf = ({ clusterId }: CloudEvent['data']): string | undefined =>
  typeof clusterId === 'string' && isId('clus', clusterId) ? clusterId : undefined

function isWanted(webhook: WebhookRecord, { type, data }: CloudEvent, labels: ReadonlyMap<string, Labels>): boolean {
  if (!isSubscribed(webhook, type)) return false
  if (webhook.selector === undefined) return true
  const knownLabels = labels.get(clusterOf(data) ?? '')
  return knownLabels !== undefined && matchesText(webhook.selector, knownLabels)
}

async function createDeliveries(webhook: WebhookRecord, events: readonly CloudEvent[]): Promise<void> {
  const deliveries = events.map((event) => deliveryOf(webhook, event))
  for (const deliveriesOfChunk of chunk(deliveries, deliveriesPerTransaction)) await store(webhook, deliveriesOfChunk)
}

/** Keeps existing deliveries unchanged. Stores none if the webhook was removed. */
async function store(webhook: WebhookRecord, deliveries: readonly DeliveryRecord[]): Promise<void> {
  let missingDeliveries = deliveries
  while (missingDeliveries.length > 0) {
    const failure = await transact([wakeWrite(webhook), ...missingDeliveries.flatMap(deliveryWrites)])
    if (failure === undefined || failure.index === 0) return
    const items = await getMany(missingDeliveries.map(deliveryKey))
    missingDeliveries = missingDeliveries.filter((_, index) => items[index] === undefined)
  }
}

const deliveryOf = (webhook: WebhookRecord, event: CloudEvent): DeliveryRecord =>
  newDelivery(derivedId('dlv', Date.parse(event.time), event.id, webhook.id), webhook, event)
