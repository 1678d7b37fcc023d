import { type Webhook } from '@platform/contract/webhook'
import * as z from 'zod'
import { iso, now } from '../clock.ts'
import { type Change, type Condition } from '../db/expression.ts'
import * as keys from '../db/keys.ts'
import { get, type Item, patch, type WriteItem } from '../db/table.ts'
import { isId } from '../id.ts'
import { outboxRetryMs } from '../aws/queues.ts'

/** The stored form of a webhook: settings, failures and lease. */
const StoredWebhook = z.object({
  pk: z.string(),
  id: z.string(),
  url: z.string(),
  events: z.array(z.string()),
  isEnabled: z.boolean(),
  secretVersion: z.number().default(1),
  createdAtMs: z.number(),
  createdBy: z.string(),
  /** When the platform disabled it. */
  disabledAtMs: z.number().optional(),
  /** Failed attempts since the last success, and the time of the first one. */
  failures: z.number().default(0),
  /** Failed attempts since the receiver last responded properly. */
  outages: z.number().default(0),
  /** No attempts until then, after failures. */
  backOffUntilMs: z.number().default(0),
  /** The worker with the lease, and the end of the lease. */
  leaseId: z.string().optional(),
  leaseUntilMs: z.number().default(0),
  /** Counts new work: a worker that read an older count must not release the lease. */
  wakes: z.number().default(0),
})

/** A webhook from its record. */
export function parseWebhook(item: Item) {
  const { pk, ...row } = StoredWebhook.parse(item)
  return { ...row, organisationId: keys.organisationOf(pk) }
}
export type WebhookRecord = ReturnType<typeof parseWebhook>

/** The current webhook, or undefined. One call. */
export async function findWebhook(organisationId: string, webhookId: string): Promise<WebhookRecord | undefined> {
  const item = isId('hook', webhookId) ? await get(keys.webhook(organisationId, webhookId)) : undefined
  return item && parseWebhook(item)
}

/** The API representation of a webhook. */
export const webhookView = (row: WebhookRecord): Webhook => ({
  id: row.id,
  url: row.url,
  events: row.events,
  enabled: row.isEnabled,
  failureCount: row.failures,
  ...(row.disabledAtMs !== undefined && { disabledAt: iso(row.disabledAtMs) }),
  createdAt: iso(row.createdAtMs),
})

/** The public part of a webhook's URL: its path may contain a secret. */
export const originOf = (url: string): string => new URL(url).origin

/** Whether a webhook subscribes to an event type. */
export const isSubscribed = ({ events }: Pick<WebhookRecord, 'events'>, type: string): boolean =>
  events.some(
    (wanted) => wanted === '*' || wanted === type || (wanted.endsWith('.*') && type.startsWith(wanted.slice(0, -1))),
  )

/** Notes new work for a webhook's worker, and makes it due for the sweep in case the message is lost. */
export const wakeWrite = (
  { organisationId, id }: Pick<WebhookRecord, 'organisationId' | 'id'>,
  { set, remove }: Pick<Change, 'set' | 'remove'> = {},
  condition: Condition = {},
): WriteItem =>
  patch(
    keys.webhook(organisationId, id),
    { set: { ...keys.due(id, now() + outboxRetryMs), ...set }, add: { wakes: 1 }, ...(remove && { remove }) },
    condition,
  )

/** Resets the failure count. */
export const resetFailures = { set: { failures: 0 }, remove: ['backOffUntilMs', 'outages'] } as const

/** Ends the back-off, because a user requested an attempt. */
export const clearQuietPeriod = { remove: ['backOffUntilMs'] } as const
