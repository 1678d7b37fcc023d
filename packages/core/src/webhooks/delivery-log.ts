import { type Delivery, shownDeliveries } from '@platform/contract/webhook'
import { type Caller } from '../caller.ts'
import { commit } from '../outbox/commit.ts'
import { now } from '../clock.ts'
import { cloudEvent } from './cloud-event.ts'
import * as keys from '../db/keys.ts'
import { get, getAll, orFail, patch, remove, type Step } from '../db/table.ts'
import {
  type DeliveryRow,
  deliverySteps,
  deliveryView,
  keepDeliveriesMs,
  keyOf,
  newDelivery,
  parseDelivery,
  waitKey,
  waitStep,
} from './delivery-record.ts'
import { fault } from '../error.ts'
import { idsBefore, isId, newId } from '../id.ts'
import { indexedKeys, type Page } from '../db/index-page.ts'
import { currentTraceId } from '../log.ts'
import { announceWebhook } from '../aws/queues.ts'
import { findWebhook, isAwaited, wakeStep, type WebhookRow } from './record.ts'

/** Deliveries as the owners of a webhook see them: what became of each, and once more (D39). */

/** One page of the newest thousand, newest first. Three calls. */
export async function list({ organisationId }: Caller, webhookId: string, { page, pageSize }: Page) {
  const range = {
    index: 'gsi1' as const,
    pk: keys.webhookDeliveries(organisationId, webhookId),
    from: idsBefore('dlv', now() - keepDeliveriesMs),
    newestFirst: true,
    limit: shownDeliveries,
  }
  const [webhook, found] = await Promise.all([findWebhook(organisationId, webhookId), indexedKeys(range)])
  if (webhook === undefined) throw fault('webhook_not_found')
  const shown = found.slice((page - 1) * pageSize, page * pageSize).map(({ pk, sk }) => ({ pk, sk }))
  const rows = shown.length === 0 ? [] : await getAll(shown, { stale: true })
  const items = rows.filter((row) => row !== undefined).map((row) => deliveryView(parseDelivery(row)))
  return { items, totalCount: found.length, page, pageSize }
}

/** Sends an event of its own to one webhook. Two calls and two messages. */
export async function test(caller: Caller, webhookId: string): Promise<Delivery> {
  const webhook = await enabledWebhook(caller, webhookId)
  const { organisationId } = caller
  const event = cloudEvent(
    { id: newId('evt'), name: 'webhook.tested', subject: webhookId, data: { webhookId } },
    { organisationId, atMs: now(), traceId: currentTraceId() },
  )
  const row = newDelivery(newId('dlv'), webhook, event)
  return send(caller, webhook, row, deliverySteps(row), 'webhook.test')
}

/** Delivers an event again, whatever became of it: the same body and id. Three calls and two messages. */
export async function redeliver(caller: Caller, webhookId: string, deliveryId: string): Promise<Delivery> {
  const webhook = await enabledWebhook(caller, webhookId)
  const item = isId('dlv', deliveryId)
    ? await get(keys.delivery(caller.organisationId, webhookId, deliveryId))
    : undefined
  const row = item && parseDelivery(item)
  if (row === undefined || row.createdAtMs + keepDeliveriesMs <= now()) throw fault('delivery_not_found')
  const again = { ...row, status: 'Pending' as const, tries: 0, nextAttemptAtMs: now() }
  return send(caller, webhook, again, renewSteps(row, again), 'webhook.redeliver')
}

function renewSteps(row: DeliveryRow, again: DeliveryRow & { nextAttemptAtMs: number }) {
  const { status, tries, nextAttemptAtMs } = again
  const before = row.nextAttemptAtMs === undefined ? undefined : waitKey(row, row.nextAttemptAtMs)
  const isMoved = before !== undefined && before.sk !== waitKey(again, nextAttemptAtMs).sk
  const asRead = { status: { is: row.status }, tries: { is: row.tries } }
  return [
    orFail(patch(keyOf(row), { set: { status, tries, nextAttemptAtMs } }, asRead), 'conflict'),
    ...(isMoved ? [remove(before)] : []),
    waitStep(again, nextAttemptAtMs),
  ]
}

/** Somebody waits for it: the quiet that failures have brought ends. */
async function send(caller: Caller, webhook: WebhookRow, row: DeliveryRow, steps: readonly Step[], action: string) {
  const { organisationId, webhookId } = row
  const answer = deliveryView(row)
  await commit(caller, {
    steps: [orFail(wakeStep(webhook, isAwaited), 'webhook_not_found'), ...steps],
    answer,
    audit: { action, resource: webhookId, detail: row.id },
  })
  await announceWebhook({ organisationId, webhookId })
  return answer
}

async function enabledWebhook({ organisationId }: Caller, webhookId: string): Promise<WebhookRow> {
  const webhook = await findWebhook(organisationId, webhookId)
  if (webhook === undefined) throw fault('webhook_not_found')
  if (!webhook.isEnabled) throw fault('webhook_disabled')
  return webhook
}
