import type { CloudEvent } from '@platform/contract/event'
import { attemptErrors, type Delivery, deliveryStatuses } from '@platform/contract/webhook'
import * as z from 'zod'
import { iso, now } from '../clock.ts'
import * as keys from '../db/keys.ts'
import { create, type Item, replace, type WriteItem } from '../db/table.ts'

/** Deliveries are stored for this time, so that they can be redelivered. */
export const deliveryRetentionMs = 30 * 24 * 3_600_000
const maxAttempts = 20

const StoredAttempt = z.object({
  atMs: z.number(),
  statusCode: z.number().optional(),
  error: z.enum(attemptErrors).optional(),
  durationMs: z.number(),
})
export type Attempt = z.infer<typeof StoredAttempt>

/** Every attempt sends the stored body. */
const DeliveryRecord = z.object({
  id: z.string(),
  organisationId: z.string(),
  webhookId: z.string(),
  eventId: z.string(),
  eventType: z.string(),
  body: z.string(),
  /** Set for events of jobs, which are not sent once the cluster is removed. */
  clusterId: z.string().optional(),
  status: z.enum(deliveryStatuses),
  /** The number of attempts since the creation or the last redelivery request. */
  tries: z.number(),
  attempts: z.array(StoredAttempt),
  /** Set while Pending; part of the key of the pending item. */
  nextAttemptAtMs: z.number().optional(),
  createdAtMs: z.number(),
})
export type DeliveryRecord = z.infer<typeof DeliveryRecord>

export const parseDelivery = (item: Item): DeliveryRecord => DeliveryRecord.parse(item)

export const deliveryView = (record: DeliveryRecord): Delivery => ({
  id: record.id,
  status: record.status,
  eventId: record.eventId,
  eventType: record.eventType,
  attempts: record.attempts.map(({ atMs, ...attempt }) => ({ at: iso(atMs), ...attempt })),
  ...(record.nextAttemptAtMs !== undefined && { nextAttemptAt: iso(record.nextAttemptAtMs) }),
  createdAt: iso(record.createdAtMs),
})

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
    ...(isJobEvent(event) && { clusterId: String(event.data['clusterId']) }),
    status: 'Pending',
    tries: 0,
    attempts: [],
    nextAttemptAtMs: createdAtMs,
    createdAtMs,
  }
}

const isJobEvent = ({ type, data }: CloudEvent): boolean =>
  type.startsWith('platform.job.') && typeof data['clusterId'] === 'string'

/** The first write fails if the delivery exists. */
export const deliveryWrites = (record: DeliveryRecord): WriteItem[] => [
  create(deliveryKey(record), {
    ...record,
    gsi1pk: keys.webhookDeliveries(record.organisationId, record.webhookId),
    ttl: ttlOf(record),
  }),
  pendingWrite(record, record.createdAtMs),
]

export const deliveryKey = (record: DeliveryRecord): keys.Key =>
  keys.delivery(record.organisationId, record.webhookId, record.id)

export const pendingKey = ({ organisationId, webhookId, id, tries }: DeliveryRecord, atMs: number): keys.Key =>
  keys.pendingDelivery(organisationId, webhookId, { isFirst: tries === 0, atMs, deliveryId: id })

/** Idempotent, because the key derives from the delivery and its due time. */
export const pendingWrite = (record: DeliveryRecord, atMs: number): WriteItem =>
  replace(pendingKey(record, atMs), {
    deliveryId: record.id,
    atMs,
    pauseMs: Math.max(0, atMs - now()),
    ttl: ttlOf(record),
    ...(record.clusterId !== undefined && { clusterId: record.clusterId }),
  })

const ttlOf = ({ createdAtMs }: DeliveryRecord): number => Math.ceil((createdAtMs + deliveryRetentionMs) / 1000)

export const withAttempt = ({ attempts }: DeliveryRecord, attempt: Attempt): Attempt[] =>
  [...attempts, attempt].slice(-maxAttempts)
