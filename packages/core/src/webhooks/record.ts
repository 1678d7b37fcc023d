import type { Webhook } from '@platform/contract/webhook'
import * as z from 'zod'
import { iso, now } from '../clock.ts'
import type { Change, Condition } from '../db/expression.ts'
import * as keys from '../db/keys.ts'
import { get, type Item, patch, type WriteItem } from '../db/table.ts'
import { isId } from '../id.ts'
import { outboxRetryMs } from '../aws/queues.ts'

const PreviousSecret = z.object({ version: z.number(), untilMs: z.number() })
export type PreviousSecret = z.infer<typeof PreviousSecret>

const StoredWebhook = z.object({
  pk: z.string(),
  id: z.string(),
  url: z.string(),
  events: z.array(z.string()),
  selector: z.string().optional(),
  isEnabled: z.boolean(),
  secretVersion: z.number().default(1),
  /** Replaced secrets, oldest first. Deliveries are also signed with them until they expire. */
  previousSecrets: z.array(PreviousSecret).default([]),
  createdAtMs: z.number(),
  createdBy: z.string(),
  /** Set if the platform disabled the webhook after failures. */
  disabledAtMs: z.number().optional(),
  /** The number of failed attempts since the last success or `failureReset`. */
  failures: z.number().default(0),
  /** The number of failed attempts since the receiver last responded with success or a permanent rejection. */
  outages: z.number().default(0),
  backOffUntilMs: z.number().default(0),
  leaseId: z.string().optional(),
  leaseUntilMs: z.number().default(0),
  /** Incremented by new work. A worker that has read an older value must not release the lease. */
  wakes: z.number().default(0),
})

export function parseWebhook(item: Item) {
  const { pk, ...record } = StoredWebhook.parse(item)
  return { ...record, organisationId: keys.organisationOf(pk) }
}
export type WebhookRecord = ReturnType<typeof parseWebhook>

export async function findWebhook(organisationId: string, webhookId: string): Promise<WebhookRecord | undefined> {
  const item = isId('hook', webhookId) ? await get(keys.webhook(organisationId, webhookId)) : undefined
  return item && parseWebhook(item)
}

export const unexpiredSecrets = (secrets: readonly PreviousSecret[]): PreviousSecret[] =>
  secrets.filter(({ untilMs }) => untilMs > now())

const previousSecretView = ({ previousSecrets }: WebhookRecord): Pick<Webhook, 'previousSecretExpiresAt'> => {
  const newestSecret = unexpiredSecrets(previousSecrets).at(-1)
  return newestSecret === undefined ? {} : { previousSecretExpiresAt: iso(newestSecret.untilMs) }
}

export const webhookView = (record: WebhookRecord): Webhook => ({
  id: record.id,
  url: record.url,
  events: record.events,
  ...(record.selector !== undefined && { selector: record.selector }),
  enabled: record.isEnabled,
  failureCount: record.failures,
  ...(record.disabledAtMs !== undefined && { disabledAt: iso(record.disabledAtMs) }),
  ...previousSecretView(record),
  createdAt: iso(record.createdAtMs),
})

/** Omits the path, because it may contain a secret. */
export const originOf = (url: string): string => new URL(url).origin

export const isSubscribed = ({ events }: Pick<WebhookRecord, 'events'>, type: string): boolean =>
  events.some(
    (pattern) =>
      pattern === '*' || pattern === type || (pattern.endsWith('.*') && type.startsWith(pattern.slice(0, -1))),
  )

/**
 * Records new work, so that a running worker keeps its lease. Also makes the webhook due, so that the sweep finds it if
 * the queue message is lost.
 */
export const wakeWrite = (
  { organisationId, id }: Pick<WebhookRecord, 'organisationId' | 'id'>,
  { set, remove }: Pick<Change, 'set' | 'remove'> = {},
  condition: Condition = {},
): WriteItem =>
  patch(
    keys.webhook(organisationId, id),
    { set: { ...keys.dueIndexKeys(id, now() + outboxRetryMs), ...set }, add: { wakes: 1 }, ...(remove && { remove }) },
    condition,
  )

export const failureReset = { set: { failures: 0 }, remove: ['backOffUntilMs', 'outages'] } as const

/** Ends the back-off, because a user requested an attempt. */
export const backOffEnd = { remove: ['backOffUntilMs'] } as const
