import {
  type CreatedWebhook,
  type Webhook,
  type WebhookChange,
  type WebhookCreation,
  webhookLimit,
} from '@platform/contract/webhook'
import type { Caller } from '../caller.ts'
import { commit } from '../outbox/commit.ts'
import { now } from '../clock.ts'
import * as keys from '../db/keys.ts'
import * as table from '../db/table.ts'
import { PlatformError, platformError } from '../error.ts'
import { isId, newId } from '../id.ts'
import { checkUrl } from '../outbound/outbound.ts'
import { webhookAllowlist } from './delivery-attempt.ts'
import { enqueueWebhook } from '../aws/queues.ts'
import { reauthorize } from '../accounts/current-rights.ts'
import { quotaOf, quotaReachedError } from '../accounts/quota.ts'
import {
  originOf,
  parseWebhook,
  failureReset,
  unexpiredSecrets,
  wakeWrite,
  type WebhookRecord,
  webhookView,
} from './record.ts'
import { secretOf } from './secret.ts'

export async function list({ organisationId }: Caller): Promise<{ items: Webhook[] }> {
  const { pk } = keys.webhook(organisationId, '')
  const { items } = await table.query({ pk, isNewestFirst: true, limit: webhookLimit })
  return { items: items.map((item) => webhookView(parseWebhook(item))) }
}

/** Only the responses of `create` and `rotateSecret` contain the secret. */
export async function create(
  caller: Caller,
  { url, events, selector, enabled = true }: WebhookCreation,
): Promise<CreatedWebhook> {
  checkAddress(url)
  const { organisationId, userId } = caller
  const [, organisation] = await reauthorize(caller, ['users:admin'], [keys.organisation(organisationId)])
  const limit = quotaOf(organisation, 'webhooks')
  if (limit === 0) throw quotaReachedError('webhooks', { limit, used: 0 })
  const record = {
    id: newId('hook'),
    url,
    events: [...new Set(events)],
    ...(selector !== undefined && { selector }),
    isEnabled: enabled,
    secretVersion: 1,
    previousSecrets: [],
    createdAtMs: now(),
    createdBy: userId,
    failures: 0,
    backOffUntilMs: 0,
    wakes: 0,
  }
  const response = {
    ...webhookView({ ...record, organisationId, outages: 0, leaseUntilMs: 0 }),
    secret: await secretOf(record),
  }
  const belowLimit = { count: { absentOrAtMost: limit - 1 } }
  const failure = await commit(caller, {
    writes: [
      table.upsert(keys.webhookCount(organisationId), { add: { count: 1 } }, belowLimit),
      table.create(keys.webhook(organisationId, record.id), record),
    ],
    response,
    audit: { action: 'webhook.create', resource: record.id, detail: originOf(url) },
  })
  if (failure !== undefined)
    throw quotaReachedError('webhooks', { limit, used: Number(failure.item?.['count'] ?? limit) })
  return response
}

/** Enabling the webhook or changing its URL resets the failure count. */
export async function change(caller: Caller, webhookId: string, change: WebhookChange): Promise<Webhook> {
  const record = await readAuthorizedWebhook(caller, webhookId)
  const { url = record.url, events = record.events, enabled = record.isEnabled } = change
  checkAddress(url)
  const changedFields = Object.keys(change)
  if (changedFields.length === 0) return webhookView(record)

  const settings = { url, events: [...new Set(events)], isEnabled: enabled }
  const isReset = change.enabled === true || url !== record.url
  // Writes only changed fields, because other changes may be concurrent.
  const fields = {
    set: {
      url: change.url,
      events: change.events && settings.events,
      isEnabled: change.enabled,
      selector: change.selector ?? undefined,
    },
    remove: change.selector === null ? ['selector'] : [],
  }
  const write = isReset
    ? wakeWrite(record, {
        set: { ...fields.set, ...failureReset.set },
        remove: [...fields.remove, ...failureReset.remove, 'disabledAtMs'],
      })
    : table.patch(keys.webhook(record.organisationId, record.id), fields)
  await commit(caller, {
    writes: [table.orThrow(write, 'webhook_not_found')],
    audit: { action: 'webhook.change', resource: record.id, detail: changedFields.join(', ') },
  })
  if (isReset && enabled) await enqueueWebhook({ organisationId: record.organisationId, webhookId: record.id })
  const { disabledAtMs, selector: oldSelector, ...rest } = record
  const selector = change.selector === undefined ? oldSelector : (change.selector ?? undefined)
  const changedRecord = { ...rest, ...settings, ...(selector !== undefined && { selector }) }
  return webhookView(isReset ? { ...changedRecord, failures: 0 } : { ...changedRecord, disabledAtMs })
}

const previousSecretMs = 24 * 3_600_000
const previousSecretLimit = 4
const tooManyRotationsMessage =
  'The secret was replaced four times within 24 hours. Try again when the oldest of the previous secrets has expired.'

/**
 * Attempts that start after the rotation are signed with the new secret and with all previous ones that have not
 * expired.
 */
export async function rotateSecret(caller: Caller, webhookId: string): Promise<CreatedWebhook> {
  const record = await readAuthorizedWebhook(caller, webhookId)
  const { id, organisationId, secretVersion } = record
  const previousSecrets = unexpiredSecrets(record.previousSecrets)
  const secretCount = previousSecrets.length
  if (secretCount >= previousSecretLimit)
    throw new PlatformError('limit_reached', tooManyRotationsMessage, { limit: previousSecretLimit, used: secretCount })
  const replacedSecret = { version: secretVersion, untilMs: now() + previousSecretMs }
  const change = {
    secretVersion: secretVersion + 1,
    previousSecrets: [...previousSecrets, replacedSecret],
  }
  const response = { ...webhookView({ ...record, ...change }), secret: await secretOf({ id, ...change }) }
  const condition = { pk: { present: true }, secretVersion: { is: secretVersion } } as const
  await commit(caller, {
    writes: [table.orThrow(table.patch(keys.webhook(organisationId, id), { set: change }, condition), 'conflict')],
    response,
    audit: { action: 'webhook.rotate-secret', resource: id },
  })
  return response
}

async function readAuthorizedWebhook(caller: Caller, webhookId: string): Promise<WebhookRecord> {
  if (!isId('hook', webhookId)) throw platformError('webhook_not_found')
  const [, item] = await reauthorize(caller, ['users:admin'], [keys.webhook(caller.organisationId, webhookId)])
  if (item === undefined) throw platformError('webhook_not_found')
  return parseWebhook(item)
}

/** Pending deliveries are no longer attempted and expire. */
export async function remove(caller: Caller, webhookId: string): Promise<void> {
  if (!isId('hook', webhookId)) throw platformError('webhook_not_found')
  const { organisationId } = caller
  const removal = table.remove(keys.webhook(organisationId, webhookId), { pk: { present: true } })
  await commit(caller, {
    writes: [
      table.orThrow(removal, 'webhook_not_found'),
      table.upsert(keys.webhookCount(organisationId), { add: { count: -1 } }),
    ],
    audit: { action: 'webhook.delete', resource: webhookId },
  })
}

/** Resolved addresses are checked at each delivery. */
function checkAddress(url: string): void {
  try {
    checkUrl(url, { allow: webhookAllowlist })
  } catch (cause) {
    const message = 'must be a public address, or one that the operator allows'
    const details = [{ in: 'body' as const, path: '/url', code: 'url_not_allowed', message }]
    throw platformError('url_not_allowed', { details }, { cause })
  }
}
