import { type Delivery, deliveryListLimit } from '@platform/contract/webhook'
import type { Caller } from '../caller.ts'
import { commit, readWithRights } from '../outbox/commit.ts'
import { now } from '../clock.ts'
import { cloudEvent } from './cloud-event.ts'
import * as keys from '../db/keys.ts'
import { get, getConsistent, orThrow, patch, remove, type WriteItem } from '../db/table.ts'
import {
  deliveryKey,
  type DeliveryRecord,
  deliveryRetentionMs,
  deliveryView,
  deliveryWrites,
  newDelivery,
  parseDelivery,
  pendingKey,
  pendingWrite,
} from './delivery-record.ts'
import { platformError } from '../error.ts'
import { isId, lowestIdAt, newId } from '../id.ts'
import { indexedKeys } from '../db/index-page.ts'
import { type Page, paged, pageOfItems, type PageQuery } from '../db/paging.ts'
import { currentTraceId } from '../log.ts'
import { enqueueWebhook } from '../aws/queues.ts'
import { backOffEnd, findWebhook, parseWebhook, wakeWrite, type WebhookRecord } from './record.ts'

/** Lists the newest 1,000 deliveries. */
export const list = (caller: Caller, webhookId: string, query: PageQuery) =>
  paged(['deliveries', caller.organisationId, webhookId], query, (page) => readPage(caller, webhookId, page))

async function readPage({ organisationId }: Caller, webhookId: string, page: Page) {
  const range = {
    index: 'gsi1' as const,
    pk: keys.webhookDeliveries(organisationId, webhookId),
    from: lowestIdAt('dlv', now() - deliveryRetentionMs),
    isNewestFirst: true,
    limit: deliveryListLimit,
  }
  const [webhook, deliveryKeys] = await Promise.all([findWebhook(organisationId, webhookId), indexedKeys(range)])
  if (webhook === undefined) throw platformError('webhook_not_found')
  const { items: pageKeys, ...rest } = pageOfItems(deliveryKeys, page, ({ id }) => id)
  const records = pageKeys.length === 0 ? [] : await getConsistent(pageKeys, { mayBeStale: true })
  const items = records.filter((record) => record !== undefined).map((record) => deliveryView(parseDelivery(record)))
  return { items, ...rest }
}

export async function test(caller: Caller, webhookId: string): Promise<Delivery> {
  const webhook = await requireEnabled(caller, webhookId)
  const { organisationId } = caller
  const event = cloudEvent(
    { id: newId('evt'), name: 'webhook.tested', subject: webhookId, data: { webhookId } },
    { organisationId, atMs: now(), traceId: currentTraceId() },
  )
  const record = newDelivery(newId('dlv'), webhook, event)
  return send(caller, webhook, record, deliveryWrites(record), 'webhook.test')
}

/** Sends the same body and event id, so that the receiver can recognise the event. */
export async function redeliver(caller: Caller, webhookId: string, deliveryId: string): Promise<Delivery> {
  const webhook = await requireEnabled(caller, webhookId)
  const item = isId('dlv', deliveryId)
    ? await get(keys.delivery(caller.organisationId, webhookId, deliveryId))
    : undefined
  const record = item && parseDelivery(item)
  if (record === undefined || record.createdAtMs + deliveryRetentionMs <= now())
    throw platformError('delivery_not_found')
  const renewedRecord = { ...record, status: 'Pending' as const, tries: 0, nextAttemptAtMs: now() }
  return send(caller, webhook, renewedRecord, renewalWrites(record, renewedRecord), 'webhook.redeliver')
}

function renewalWrites(record: DeliveryRecord, renewedRecord: DeliveryRecord & { nextAttemptAtMs: number }) {
  const { status, tries, nextAttemptAtMs } = renewedRecord
  const previousKey = record.nextAttemptAtMs === undefined ? undefined : pendingKey(record, record.nextAttemptAtMs)
  const isRescheduled = previousKey !== undefined && previousKey.sk !== pendingKey(renewedRecord, nextAttemptAtMs).sk
  const condition = { status: { is: record.status }, tries: { is: record.tries } }
  return [
    orThrow(patch(deliveryKey(record), { set: { status, tries, nextAttemptAtMs } }, condition), 'conflict'),
    ...(isRescheduled ? [remove(previousKey)] : []),
    pendingWrite(renewedRecord, nextAttemptAtMs),
  ]
}

async function send(
  caller: Caller,
  webhook: WebhookRecord,
  record: DeliveryRecord,
  writes: readonly WriteItem[],
  action: string,
) {
  const { organisationId, webhookId } = record
  const response = deliveryView(record)
  await commit(caller, {
    writes: [orThrow(wakeWrite(webhook, backOffEnd), 'webhook_not_found'), ...writes],
    response,
    audit: { action, resource: webhookId, detail: record.id },
  })
  await enqueueWebhook({ organisationId, webhookId })
  return response
}

async function requireEnabled(caller: Caller, webhookId: string): Promise<WebhookRecord> {
  const itemKeys = [keys.webhook(caller.organisationId, webhookId)]
  const [item] = isId('hook', webhookId) ? await readWithRights(caller, itemKeys) : []
  if (item === undefined) throw platformError('webhook_not_found')
  const webhook = parseWebhook(item)
  if (!webhook.isEnabled) throw platformError('webhook_disabled')
  return webhook
}
