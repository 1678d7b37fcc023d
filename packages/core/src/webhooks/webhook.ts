import {
  type CreatedWebhook,
  type Webhook,
  type WebhookChange,
  type WebhookCreation,
  webhookLimit,
} from '@platform/contract/webhook'
import { type Caller } from '../caller.ts'
import { commit } from '../outbox/commit.ts'
import { now } from '../clock.ts'
import * as keys from '../db/keys.ts'
import * as table from '../db/table.ts'
import { platformError } from '../error.ts'
import { isId, newId } from '../id.ts'
import { checkUrl } from '../outbound/outbound.ts'
import { enqueueWebhook } from '../aws/queues.ts'
import { reauthorize } from '../accounts/current-rights.ts'
import { parseWebhook, resetFailures, originOf, wakeWrite, type WebhookRecord, webhookView } from './record.ts'
import { secretOf } from './secret.ts'

/** Webhooks as their owners see them. Deliveries: `delivery.ts`. */

/** The webhooks of an organisation, newest first. One call. */
export async function list({ organisationId }: Caller): Promise<{ items: Webhook[] }> {
  const { pk } = keys.webhook(organisationId, '')
  const { items } = await table.query({ pk, newestFirst: true, limit: webhookLimit })
  return { items: items.map((item) => webhookView(parseWebhook(item))) }
}

/** Creates a webhook and returns its secret once. Two calls, and one to Secrets Manager in a new process. */
export async function create(
  caller: Caller,
  { url, events, enabled = true }: WebhookCreation,
): Promise<CreatedWebhook> {
  refusePrivate(url)
  await reauthorize(caller, ['users:admin'])
  const { organisationId, userId } = caller
  const row = {
    id: newId('hook'),
    url,
    events: [...new Set(events)],
    isEnabled: enabled,
    secretVersion: 1,
    createdAtMs: now(),
    createdBy: userId,
    failures: 0,
    backOffUntilMs: 0,
    wakes: 0,
  }
  const answer = {
    ...webhookView({ ...row, organisationId, outages: 0, leaseUntilMs: 0 }),
    secret: await secretOf(row),
  }
  // Incremented one by one, the count cannot skip the limit.
  const counted = table.upsert(
    keys.webhookCount(organisationId),
    { add: { count: 1 } },
    { count: { isNot: webhookLimit } },
  )
  await commit(caller, {
    writes: [table.orThrow(counted, 'limit_reached'), table.create(keys.webhook(organisationId, row.id), row)],
    answer,
    audit: { action: 'webhook.create', resource: row.id, detail: originOf(url) },
  })
  return answer
}

/**
 * Changes a webhook. Two calls, and a message if deliveries may be pending. A new URL or enabling it resets the failure
 * count.
 */
export async function change(caller: Caller, webhookId: string, change: WebhookChange): Promise<Webhook> {
  if (!isId('hook', webhookId)) throw platformError('webhook_not_found')
  const [, item] = await reauthorize(caller, ['users:admin'], [keys.webhook(caller.organisationId, webhookId)])
  if (item === undefined) throw platformError('webhook_not_found')
  const row = parseWebhook(item)
  const { url = row.url, events = row.events, enabled = row.isEnabled } = change
  refusePrivate(url)
  const changed = Object.keys(change)
  if (changed.length === 0) return webhookView(row)

  const next = { url, events: [...new Set(events)], isEnabled: enabled }
  const isFresh = change.enabled === true || url !== row.url
  // Writes changed fields only: another change or the platform disabling it may be concurrent.
  const named = { url: change.url, events: change.events && next.events, isEnabled: change.enabled }
  const step = isFresh ? startAnew(row, named) : leave(row, named)
  await commit(caller, {
    writes: [table.orThrow(step, 'webhook_not_found')],
    audit: { action: 'webhook.change', resource: row.id, detail: changed.join(', ') },
  })
  if (isFresh && enabled) await enqueueWebhook({ organisationId: row.organisationId, webhookId: row.id })
  const { disabledAtMs: _, ...rest } = row
  return webhookView(isFresh ? { ...rest, ...next, failures: 0 } : { ...row, ...next })
}

type Settings = { [Name in 'url' | 'events' | 'isEnabled']: WebhookRecord[Name] | undefined }

const startAnew = (row: WebhookRecord, settings: Settings) =>
  wakeWrite(row, { set: { ...settings, ...resetFailures.set }, remove: [...resetFailures.remove, 'disabledAtMs'] })

const leave = (row: WebhookRecord, settings: Settings) =>
  table.patch(keys.webhook(row.organisationId, row.id), { set: settings })

/** Removes a webhook. Pending deliveries are never attempted and expire. One call. */
export async function remove(caller: Caller, webhookId: string): Promise<void> {
  if (!isId('hook', webhookId)) throw platformError('webhook_not_found')
  const { organisationId } = caller
  const removed = table.remove(keys.webhook(organisationId, webhookId), { pk: { present: true } })
  await commit(caller, {
    writes: [
      table.orThrow(removed, 'webhook_not_found'),
      table.upsert(keys.webhookCount(organisationId), { add: { count: -1 } }),
    ],
    audit: { action: 'webhook.delete', resource: webhookId },
  })
}

/** Addresses are checked at each delivery; a private one in the URL itself is rejected at once. */
function refusePrivate(url: string): void {
  try {
    checkUrl(url)
  } catch (cause) {
    throw platformError('url_not_allowed', {}, { cause })
  }
}
