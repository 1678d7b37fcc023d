import { type CloudEvent } from '@platform/contract/event'
import { attemptErrors, type Delivery, deliveryStatuses } from '@platform/contract/webhook'
import * as z from 'zod'
import { iso } from '../clock.ts'
import * as keys from '../db/keys.ts'
import { create, type Item, replace, type WriteItem } from '../db/table.ts'

/** How long a delivery is kept, and can be delivered again. */
export const deliveryRetentionMs = 30 * 24 * 3_600_000
/** Attempts that a delivery remembers. */
const rememberedAttempts = 20

const StoredAttempt = z.object({
  atMs: z.number(),
  statusCode: z.number().optional(),
  error: z.enum(attemptErrors).optional(),
  durationMs: z.number(),
})
export type Attempt = z.infer<typeof StoredAttempt>

/** One event for one webhook. The body is fixed when it is stored: every attempt sends the same. */
const DeliveryRecord = z.object({
  id: z.string(),
  organisationId: z.string(),
  webhookId: z.string(),
  eventId: z.string(),
  eventType: z.string(),
  body: z.string(),
  status: z.enum(deliveryStatuses),
  /** Attempts since it was stored, or since somebody asked for another delivery. */
  tries: z.number(),
  attempts: z.array(StoredAttempt),
  /** Set while it is Pending; names the item that waits for it. */
  nextAttemptAtMs: z.number().optional(),
  createdAtMs: z.number(),
})
export type DeliveryRecord = z.infer<typeof DeliveryRecord>

export const parseDelivery = (item: Item): DeliveryRecord => DeliveryRecord.parse(item)

/** The wire form. */
export const deliveryView = (row: DeliveryRecord): Delivery => ({
  id: row.id,
  status: row.status,
  eventId: row.eventId,
  eventType: row.eventType,
  attempts: row.attempts.map(({ atMs, ...attempt }) => ({ at: iso(atMs), ...attempt })),
  ...(row.nextAttemptAtMs !== undefined && { nextAttemptAt: iso(row.nextAttemptAtMs) }),
  createdAt: iso(row.createdAtMs),
})

/** A delivery that may be attempted at once. */
export const newDelivery = (
  id: string,
  webhook: { organisationId: string; id: string },
  event: CloudEvent,
): DeliveryRecord => {
  const createdAtMs = Date.parse(event.time)
  return {
    id,
    organisationId: webhook.organisationId,
    webhookId: webhook.id,
    eventId: event.id,
    eventType: event.type,
    body: JSON.stringify(event),
    status: 'Pending',
    tries: 0,
    attempts: [],
    nextAttemptAtMs: createdAtMs,
    createdAtMs,
  }
}

/** The steps that store a delivery; the first is refused where it is stored already. */
export const deliveryWrites = (row: DeliveryRecord): WriteItem[] => [
  create(keyOf(row), {
    ...row,
    gsi1pk: keys.webhookDeliveries(row.organisationId, row.webhookId),
    ttl: ttlOf(row),
  }),
  pendingWrite(row, row.createdAtMs),
]

export const keyOf = (row: DeliveryRecord): keys.Key => keys.delivery(row.organisationId, row.webhookId, row.id)

/** The item that lets a delivery wait for its attempt at a time: fresh events do not stand behind old failures. */
export const pendingKey = ({ organisationId, webhookId, id, tries }: DeliveryRecord, atMs: number): keys.Key =>
  keys.pendingDelivery(organisationId, webhookId, { isFirst: tries === 0, atMs, deliveryId: id })

/** The step that lets a delivery wait; repeating it changes nothing. */
export const pendingWrite = (row: DeliveryRecord, atMs: number): WriteItem =>
  replace(pendingKey(row, atMs), { deliveryId: row.id, atMs, ttl: ttlOf(row) })

const ttlOf = ({ createdAtMs }: DeliveryRecord): number => Math.ceil((createdAtMs + deliveryRetentionMs) / 1000)

/** What a delivery remembers once another attempt was made. */
export const withAttempt = ({ attempts }: DeliveryRecord, attempt: Attempt): Attempt[] =>
  [...attempts, attempt].slice(-rememberedAttempts)
