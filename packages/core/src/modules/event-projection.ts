import type { Projection } from '../outbox/run-projections.ts'
import { now, nowSeconds } from '../clock.ts'
import { cloudEvent } from '../webhooks/cloud-event.ts'
import * as keys from '../db/keys.ts'
import { get, type Item, batchPut } from '../db/table.ts'
import { BoundedCache } from '../lib/bounded-cache.ts'
import { type AllowedEvents, readAllowedEvents } from './consent.ts'
import { parseRoutes } from './routes.ts'
import { enqueueModuleDelivery } from '../aws/queues.ts'
import type { OutboxRecord } from '../outbox/record.ts'
import { isSubscribed } from '../webhooks/record.ts'

/**
 * Stores events for subscribed modules under keys derived from the record, so that a repetition has no effect. A module
 * receives only the event types that the organisation of the event has allowed.
 */

export const eventRetentionSeconds = 24 * 3600
const cacheTtlMs = 2000

interface Subscriber {
  moduleId: string
  publisher: string | undefined
  subscriptions: readonly string[]
}

let cache: { atMs: number; subscribers: readonly Subscriber[] } | undefined

async function currentSubscribers(): Promise<readonly Subscriber[]> {
  // Uses the absolute difference, because the clock may be set back.
  if (cache === undefined || Math.abs(now() - cache.atMs) >= cacheTtlMs) {
    const { reservations } = parseRoutes(await get(keys.moduleRoutes(), { mayBeStale: true }))
    const subscribers = [...reservations].map(([moduleId, { publisher, subscriptions = [] }]) => ({
      moduleId,
      publisher,
      subscriptions,
    }))
    cache = { atMs: now(), subscribers: subscribers.filter((subscriber) => subscriber.subscriptions.length > 0) }
  }
  return cache.subscribers
}

const allowedCache = new BoundedCache<{ atMs: number; allowedTypesOf: AllowedEvents }>(500)

async function currentAllowedEvents(organisationId: string): Promise<AllowedEvents> {
  const cachedEntry = allowedCache.get(organisationId)
  if (cachedEntry !== undefined && Math.abs(now() - cachedEntry.atMs) < cacheTtlMs) return cachedEntry.allowedTypesOf
  const allowedTypesOf = await readAllowedEvents(organisationId)
  allowedCache.set(organisationId, { atMs: now(), allowedTypesOf })
  return allowedTypesOf
}

/** Passes the ids of modules with new events from `beforeCommit` to `afterCommit`. */
const moduleIdsByRecords = new WeakMap<readonly OutboxRecord[], ReadonlySet<string>>()

export const moduleEventProjection: Projection = {
  name: 'modules',
  beforeCommit: async (organisationId, records) => {
    if (!records.some(({ events }) => events.length > 0)) return
    const subscribers = await currentSubscribers()
    if (subscribers.length === 0) return
    const allowedTypesOf = await currentAllowedEvents(organisationId)
    const entries = subscribers.map((subscriber) => ({
      subscriber,
      items: itemsFor(subscriber, allowedTypesOf(subscriber), records),
    }))
    await batchPut(entries.flatMap(({ items }) => items))
    const moduleIds = entries.filter(({ items }) => items.length > 0).map(({ subscriber: { moduleId } }) => moduleId)
    moduleIdsByRecords.set(records, new Set(moduleIds))
  },
  /** If a message is lost, the next supervision run enqueues it again. */
  afterCommit: async (organisationId, records) => {
    await Promise.all(
      [...(moduleIdsByRecords.get(records) ?? [])].map((moduleId) => enqueueModuleDelivery(organisationId, moduleId)),
    )
  },
}

/** Modules do not receive their own events, which could loop forever. */
const itemsFor = (
  { moduleId, publisher, subscriptions }: Subscriber,
  allowedTypes: readonly string[],
  records: readonly OutboxRecord[],
): Item[] =>
  records.flatMap((record) =>
    record.events.flatMap((event, index) => {
      const envelope = cloudEvent(event, record)
      const isOwnEvent = envelope.type.startsWith(`module.${moduleId}.`)
      const isWanted = [subscriptions, allowedTypes].every((events) =>
        isSubscribed({ events: [...events] }, envelope.type),
      )
      if (isOwnEvent || !isWanted) return []
      const key = keys.moduleEvent(moduleId, `${record.id}.${String(index).padStart(3, '0')}`)
      return [{ ...key, event: JSON.stringify(envelope), publisher, ttl: nowSeconds() + eventRetentionSeconds }]
    }),
  )
