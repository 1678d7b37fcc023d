import { type Projection } from '../outbox/run-projections.ts'
import { now, nowSeconds } from '../clock.ts'
import { cloudEvent } from '../webhooks/cloud-event.ts'
import * as keys from '../db/keys.ts'
import { get, type Item, batchPut } from '../db/table.ts'
import { parseRoutes } from './routes.ts'
import { enqueueModuleDelivery } from '../aws/queues.ts'
import { type OutboxRecord } from '../outbox/record.ts'
import { isSubscribed } from '../webhooks/record.ts'

/**
 * Stores events for subscribed modules: one item per module, under a key derived from the record, so that repetition is
 * idempotent. Modules belong to the platform and receive events of all organisations.
 */

/** Undelivered events expire after this time. */
export const eventRetentionSeconds = 24 * 3600
/** Subscriptions are cached for this time: one small read in a busy process, none in an idle one. */
const subscribersMs = 2000

interface Subscriber {
  moduleId: string
  subscriptions: readonly string[]
}

let known: { atMs: number; subscribers: readonly Subscriber[] } | undefined

/** Running modules with subscriptions. At most one call. */
async function subscribersNow(): Promise<readonly Subscriber[]> {
  // The clock may be set back.
  if (known === undefined || Math.abs(now() - known.atMs) >= subscribersMs) {
    const { claims } = parseRoutes(await get(keys.moduleRoutes(), { stale: true }))
    const subscribers = [...claims].map(([moduleId, { subscriptions = [] }]) => ({ moduleId, subscriptions }))
    known = { atMs: now(), subscribers: subscribers.filter((one) => one.subscriptions.length > 0) }
  }
  return known.subscribers
}

/** Modules with new events, by their records, until those are committed. */
const told = new WeakMap<readonly OutboxRecord[], ReadonlySet<string>>()

export const moduleEventProjection: Projection = {
  name: 'modules',
  /** One call in two seconds, and one per 25 items. */
  beforeCommit: async (_, records) => {
    if (!records.some(({ events }) => events.length > 0)) return
    const waiting = (await subscribersNow()).map((subscriber) => ({ subscriber, items: itemsFor(subscriber, records) }))
    await batchPut(waiting.flatMap(({ items }) => items))
    const woken = waiting.filter(({ items }) => items.length > 0).map(({ subscriber: { moduleId } }) => moduleId)
    told.set(records, new Set(woken))
  },
  /** One message per module. If it is lost, the next supervision run delivers. */
  afterCommit: async (organisationId, records) => {
    await Promise.all([...(told.get(records) ?? [])].map((moduleId) => enqueueModuleDelivery(organisationId, moduleId)))
  },
}

/** Modules do not receive their own events, which could loop forever. */
const itemsFor = ({ moduleId, subscriptions }: Subscriber, records: readonly OutboxRecord[]): Item[] =>
  records.flatMap((record) =>
    record.events.flatMap((event, index) => {
      const envelope = cloudEvent(event, record)
      const isOwn = envelope.type.startsWith(`module.${moduleId}.`)
      if (isOwn || !isSubscribed({ events: [...subscriptions] }, envelope.type)) return []
      const key = keys.moduleEvent(moduleId, `${record.id}.${String(index).padStart(3, '0')}`)
      return [{ ...key, event: JSON.stringify(envelope), ttl: nowSeconds() + eventRetentionSeconds }]
    }),
  )
