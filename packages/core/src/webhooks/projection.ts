import { type CloudEvent } from '@platform/contract/event'
import { type Labels, Labels as EventLabels } from '@platform/contract/label'
import { labelsOf, matchesText } from '../labels/labels.ts'
import { type Projection } from '../outbox/run-projections.ts'
import { cloudEvent } from './cloud-event.ts'
import { isBackingOff } from './delivery-outcome.ts'
import * as keys from '../db/keys.ts'
import { getMany, query } from '../db/table.ts'
import { transact } from '../db/transact.ts'
import { type DeliveryRecord, deliveryWrites, deliveryKey, newDelivery } from './delivery-record.ts'
import { derivedId, isId } from '../id.ts'
import { forEachLimit, chunk } from '../lib/async.ts'
import { enqueueWebhook } from '../aws/queues.ts'
import { type OutboxRecord } from '../outbox/record.ts'
import { isSubscribed, parseWebhook, wakeWrite, type WebhookRecord } from './record.ts'

/** Ids of deliveries are derived, so that a repeated projection has no effect. */

/** A transaction has at most 100 writes: two per delivery, and one for the webhook. */
const deliveriesPerTransaction = 49
/** Limits the load that one organisation with many webhooks causes. */
const webhookConcurrency = 3

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
      .map((webhook) => ({ webhook, matching: events.filter((event) => isWanted(webhook, event, labels)) }))
      .filter(({ matching }) => matching.length > 0)
    await forEachLimit(webhookConcurrency, subscriptions, ({ webhook, matching }) =>
      createDeliveries(webhook, matching),
    )
    pendingWebhooks.set(
      records,
      subscriptions.map(({ webhook }) => webhook),
    )
  },
  afterCommit: async (organisationId, records) => {
    const ready = (pendingWebhooks.get(records) ?? []).filter((webhook) => !isBackingOff(webhook))
    await Promise.all(ready.map(({ id: webhookId }) => enqueueWebhook({ organisationId, webhookId })))
  },
}

async function enabledWebhooks(organisationId: string): Promise<WebhookRecord[]> {
  const { items } = await query({ pk: keys.webhook(organisationId, '').pk })
  return items.map(parseWebhook).filter(({ isEnabled }) => isEnabled)
}

/**
 * The labels of the clusters of events. Reads them only if a webhook has a selector. The event of a removal contains
 * the last labels, which also apply to earlier events of the cluster.
 */
async function labelsOfEvents(
  organisationId: string,
  webhooks: readonly WebhookRecord[],
  events: readonly CloudEvent[],
): Promise<ReadonlyMap<string, Labels>> {
  if (webhooks.every(({ selector }) => selector === undefined)) return new Map()
  const ids = new Set(events.flatMap(({ data }) => clusterOf(data) ?? []))
  const labels = await labelsOf(organisationId, [...ids], { stale: false })
  for (const { data } of events) {
    const { success, data: last } = EventLabels.safeParse(data['labels'])
    const clusterId = clusterOf(data)
    if (success && clusterId !== undefined && !labels.has(clusterId)) labels.set(clusterId, last)
  }
  return labels
}

const clusterOf = ({ clusterId }: CloudEvent['data']): string | undefined =>
  typeof clusterId === 'string' && isId('clus', clusterId) ? clusterId : undefined

function isWanted(webhook: WebhookRecord, { type, data }: CloudEvent, labels: ReadonlyMap<string, Labels>): boolean {
  if (!isSubscribed(webhook, type)) return false
  if (webhook.selector === undefined) return true
  const known = labels.get(clusterOf(data) ?? '')
  return known !== undefined && matchesText(webhook.selector, known)
}

async function createDeliveries(webhook: WebhookRecord, events: readonly CloudEvent[]): Promise<void> {
  const deliveries = events.map((event) => deliveryOf(webhook, event))
  for (const deliveriesOfChunk of chunk(deliveries, deliveriesPerTransaction)) await store(webhook, deliveriesOfChunk)
}

/** Existing deliveries are unchanged. Stores none if the webhook was removed. */
async function store(webhook: WebhookRecord, deliveries: readonly DeliveryRecord[]): Promise<void> {
  let missing = deliveries
  while (missing.length > 0) {
    const failure = await transact([wakeWrite(webhook), ...missing.flatMap(deliveryWrites)])
    if (failure === undefined || failure.index === 0) return
    const items = await getMany(missing.map(deliveryKey))
    missing = missing.filter((_, index) => items[index] === undefined)
  }
}

const deliveryOf = (webhook: WebhookRecord, event: CloudEvent): DeliveryRecord =>
  newDelivery(derivedId('dlv', Date.parse(event.time), event.id, webhook.id), webhook, event)
