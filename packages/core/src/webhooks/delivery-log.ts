import { type Delivery, shownDeliveries } from '@platform/contract/webhook'
import { type Caller } from '../caller.ts'
import { commit } from '../outbox/commit.ts'
import { now } from '../clock.ts'
import { cloudEvent } from './cloud-event.ts'
import * as keys from '../db/keys.ts'
import { get, getConsistent, orThrow, patch, remove, type WriteItem } from '../db/table.ts'
import {
  type DeliveryRecord,
  deliveryWrites,
  deliveryView,
  deliveryRetentionMs,
  keyOf,
  newDelivery,
  parseDelivery,
  pendingKey,
  pendingWrite,
} from './delivery-record.ts'
import { platformError } from '../error.ts'
import { idsBefore, isId, newId } from '../id.ts'
import { indexedKeys, type Page } from '../db/index-page.ts'
import { currentTraceId } from '../log.ts'
import { enqueueWebhook } from '../aws/queues.ts'
import { findWebhook, clearQuietPeriod, wakeWrite, type WebhookRecord } from './record.ts'

/** Deliveries as the owners of a webhook see them: list, test and redeliver. */

/** One page of the newest thousand, newest first. Three calls. */
export async function list({ organisationId }: Caller, webhookId: string, { page, pageSize }: Page) {
  const range = {
    index: 'gsi1' as const,
    pk: keys.webhookDeliveries(organisationId, webhookId),
    from: idsBefore('dlv', now() - deliveryRetentionMs),
    newestFirst: true,
    limit: shownDeliveries,
  }
  const [webhook, found] = await Promise.all([findWebhook(organisationId, webhookId), indexedKeys(range)])
  if (webhook === undefined) throw platformError('webhook_not_found')
  const shown = found.slice((page - 1) * pageSize, page * pageSize).map(({ pk, sk }) => ({ pk, sk }))
  const rows = shown.length === 0 ? [] : await getConsistent(shown, { stale: true })
  const items = rows.filter((row) => row !== undefined).map((row) => deliveryView(parseDelivery(row)))
  return { items, totalCount: found.length, page, pageSize }
}

/** Sends a test event to one webhook. Two calls and two messages. */
export async function test(caller: Caller, webhookId: string): Promise<Delivery> {
  const webhook = await enabledWebhook(caller, webhookId)
  const { organisationId } = caller
  const event = cloudEvent(
    { id: newId('evt'), name: 'webhook.tested', subject: webhookId, data: { webhookId } },
    { organisationId, atMs: now(), traceId: currentTraceId() },
  )
  const row = newDelivery(newId('dlv'), webhook, event)
  return send(caller, webhook, row, deliveryWrites(row), 'webhook.test')
}

/** Delivers an event again with the same body and id. Three calls and two messages. */
export async function redeliver(caller: Caller, webhookId: string, deliveryId: string): Promise<Delivery> {
  const webhook = await enabledWebhook(caller, webhookId)
  const item = isId('dlv', deliveryId)
    ? await get(keys.delivery(caller.organisationId, webhookId, deliveryId))
    : undefined
  const row = item && parseDelivery(item)
  if (row === undefined || row.createdAtMs + deliveryRetentionMs <= now()) throw platformError('delivery_not_found')
  const again = { ...row, status: 'Pending' as const, tries: 0, nextAttemptAtMs: now() }
  return send(caller, webhook, again, renewSteps(row, again), 'webhook.redeliver')
}

function renewSteps(row: DeliveryRecord, again: DeliveryRecord & { nextAttemptAtMs: number }) {
  const { status, tries, nextAttemptAtMs } = again
  const before = row.nextAttemptAtMs === undefined ? undefined : pendingKey(row, row.nextAttemptAtMs)
  const isMoved = before !== undefined && before.sk !== pendingKey(again, nextAttemptAtMs).sk
  const asRead = { status: { is: row.status }, tries: { is: row.tries } }
  return [
    orThrow(patch(keyOf(row), { set: { status, tries, nextAttemptAtMs } }, asRead), 'conflict'),
    ...(isMoved ? [remove(before)] : []),
    pendingWrite(again, nextAttemptAtMs),
  ]
}

/** A user waits for it, so the back-off ends. */
async function send(
  caller: Caller,
  webhook: WebhookRecord,
  row: DeliveryRecord,
  steps: readonly WriteItem[],
  action: string,
) {
  const { organisationId, webhookId } = row
  const answer = deliveryView(row)
  await commit(caller, {
    writes: [orThrow(wakeWrite(webhook, clearQuietPeriod), 'webhook_not_found'), ...steps],
    answer,
    audit: { action, resource: webhookId, detail: row.id },
  })
  await enqueueWebhook({ organisationId, webhookId })
  return answer
}

async function enabledWebhook({ organisationId }: Caller, webhookId: string): Promise<WebhookRecord> {
  const webhook = await findWebhook(organisationId, webhookId)
  if (webhook === undefined) throw platformError('webhook_not_found')
  if (!webhook.isEnabled) throw platformError('webhook_disabled')
  return webhook
}
