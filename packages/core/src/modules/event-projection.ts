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
 * Turns events into what waits for modules (D37): one item for each module that has subscribed, under a key that the record
 * gives, so that records that are prepared twice make nothing twice. Modules are the platform's: they hear of every
 * organisation, whose name is in the envelope.
 */

/** What no module has taken by then is dropped. */
export const eventRetentionSeconds = 24 * 3600
/** Who has subscribed is read again after this long: the event bus costs a busy process one small read in it, an idle one none. */
const subscribersMs = 2000

interface Subscriber {
  moduleId: string
  subscriptions: readonly string[]
}

let known: { atMs: number; subscribers: readonly Subscriber[] } | undefined

/** Modules that run and have subscribed to something. One call, or none. */
async function subscribersNow(): Promise<readonly Subscriber[]> {
  // A clock that was set back must not keep it either.
  if (known === undefined || Math.abs(now() - known.atMs) >= subscribersMs) {
    const { claims } = parseRoutes(await get(keys.moduleRoutes(), { stale: true }))
    const subscribers = [...claims].map(([moduleId, { subscriptions = [] }]) => ({ moduleId, subscriptions }))
    known = { atMs: now(), subscribers: subscribers.filter((one) => one.subscriptions.length > 0) }
  }
  return known.subscribers
}

/** Modules that have got something, by the records that brought it, until those are closed. */
const told = new WeakMap<readonly OutboxRecord[], ReadonlySet<string>>()

export const moduleEventProjection: Projection = {
  name: 'modules',
  /** One call in two seconds, and one per 25 items that modules get. */
  prepare: async (_, records) => {
    if (!records.some(({ events }) => events.length > 0)) return
    const waiting = (await subscribersNow()).map((subscriber) => ({ subscriber, items: itemsFor(subscriber, records) }))
    await batchPut(waiting.flatMap(({ items }) => items))
    const woken = waiting.filter(({ items }) => items.length > 0).map(({ subscriber: { moduleId } }) => moduleId)
    told.set(records, new Set(woken))
  },
  /** One message for each module. Should it be lost, the next heartbeat finds what waits. */
  follow: async (organisationId, records) => {
    await Promise.all([...(told.get(records) ?? [])].map((moduleId) => enqueueModuleDelivery(organisationId, moduleId)))
  },
}

/** What a module publishes it does not hear itself: it would answer itself without end. */
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
