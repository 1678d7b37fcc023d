import { type Webhook } from '@platform/contract/webhook'
import * as z from 'zod'
import { iso, now } from '../clock.ts'
import { type Change, type Condition } from '../db/expression.ts'
import * as keys from '../db/keys.ts'
import { get, type Item, patch, type WriteItem } from '../db/table.ts'
import { isId } from '../id.ts'
import { outboxRetryMs } from '../aws/queues.ts'

/** How a webhook is stored: what its owner has set, how its receiver fares, and who is delivering to it. */
const StoredWebhook = z.object({
  pk: z.string(),
  id: z.string(),
  url: z.string(),
  events: z.array(z.string()),
  isEnabled: z.boolean(),
  secretVersion: z.number().default(1),
  createdAtMs: z.number(),
  createdBy: z.string(),
  /** When the platform switched it off. */
  disabledAtMs: z.number().optional(),
  /** Failed attempts since the last success, and when the first of them was. */
  failures: z.number().default(0),
  /** Failed attempts since the receiver last showed that it lives. */
  outages: z.number().default(0),
  /** Until then nothing is attempted, whatever waits: a receiver that fails is left alone. */
  quietUntilMs: z.number().default(0),
  /** Who delivers, and until when nobody else does. */
  leaseId: z.string().optional(),
  leaseUntilMs: z.number().default(0),
  /** Counts what gives a worker something to do: one that saw less must not go to rest. */
  wakes: z.number().default(0),
})

/** A webhook as its row tells. */
export function parseWebhook(item: Item) {
  const { pk, ...row } = StoredWebhook.parse(item)
  return { ...row, organisationId: keys.organisationOf(pk) }
}
export type WebhookRecord = ReturnType<typeof parseWebhook>

/** A webhook as it stands now, or undefined. One call. */
export async function findWebhook(organisationId: string, webhookId: string): Promise<WebhookRecord | undefined> {
  const item = isId('hook', webhookId) ? await get(keys.webhook(organisationId, webhookId)) : undefined
  return item && parseWebhook(item)
}

/** The wire form of a row. */
export const webhookView = (row: WebhookRecord): Webhook => ({
  id: row.id,
  url: row.url,
  events: row.events,
  enabled: row.isEnabled,
  failureCount: row.failures,
  ...(row.disabledAtMs !== undefined && { disabledAt: iso(row.disabledAtMs) }),
  createdAt: iso(row.createdAtMs),
})

/** What of a webhook's address may be told to others: what follows may be a secret between the receiver and its owner. */
export const originOf = (url: string): string => new URL(url).origin

/** Whether a webhook has subscribed to a type of event. */
export const isSubscribed = ({ events }: Pick<WebhookRecord, 'events'>, type: string): boolean =>
  events.some(
    (wanted) => wanted === '*' || wanted === type || (wanted.endsWith('.*') && type.startsWith(wanted.slice(0, -1))),
  )

/** The step that gives a webhook's worker something to do, and files it so that the sweep finds what no message tells. */
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

/** What ends the count of failures. */
export const resetFailures = { set: { failures: 0 }, remove: ['quietUntilMs', 'outages'] } as const

/** What ends the quiet after failures, because somebody has asked for an attempt. */
export const clearQuietPeriod = { remove: ['quietUntilMs'] } as const
