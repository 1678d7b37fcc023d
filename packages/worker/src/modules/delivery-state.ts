import { CloudEvent } from '@platform/contract/event'
import { isAhead, nowSeconds, now } from '@platform/core/clock'
import * as keys from '@platform/core/db/keys'
import { removeAll, transact } from '@platform/core/db/transact'
import { query, remove, get, tryUpdate } from '@platform/core/db/table'
import { log } from '@platform/core/log'
import * as z from 'zod'
import { newNonce } from '@platform/core/id'
import { eventRetentionSeconds } from '@platform/core/modules/event-projection'
import { type ModuleRecord, publisherOf } from '@platform/core/modules/record'
import { findModule } from './records.ts'

const StoredEvent = z.object({
  sk: z.string(),
  event: z.string().transform((text) => CloudEvent.parse(JSON.parse(text))),
  ttl: z.number(),
  /** The publisher that the organisation has allowed to receive the event. */
  publisher: z.string(),
  /** Weighted number of failures in individual delivery. */
  tries: z.number().default(0),
})
export type PendingEvent = z.infer<typeof StoredEvent>

const pageSize = 50

/**
 * Returns the next events, oldest first; undefined if there are none, or if the module was removed or has another
 * publisher. Drops expired and unreadable events, and events for a release of another publisher, so the result may be
 * empty.
 */
export async function nextEvents({ id: moduleId, release }: ModuleRecord): Promise<PendingEvent[] | undefined> {
  const { items } = await query({ ...keys.moduleEvents(moduleId), limit: pageSize })
  if (items.length === 0) return undefined
  const parsed = items.flatMap((item) => StoredEvent.safeParse(item).data ?? [])
  const publisher = publisherOf(release)
  const pendingEvents = parsed.filter((event) => event.ttl > nowSeconds() && event.publisher === publisher)
  const pendingKeys = new Set<unknown>(pendingEvents.map(({ sk }) => sk))
  const droppedKeys = items.flatMap(({ sk }) => (pendingKeys.has(sk) ? [] : [String(sk)]))
  if (droppedKeys.length > 0) {
    // After an upgrade to another publisher, a worker that has read the old release must keep the new events.
    const currentModule = await findModule(moduleId)
    if (currentModule === undefined || publisherOf(currentModule.release) !== publisher) return undefined
    log('warn', 'Dropped module events that had expired, were unreadable or belonged to another publisher', {
      moduleId,
      dropped: droppedKeys.length,
    })
    await transact(droppedKeys.map((sk) => remove(keys.moduleEvent(moduleId, sk))))
  }
  return pendingEvents
}

export async function hasEvents(moduleId: string): Promise<boolean> {
  const { items } = await query({ ...keys.moduleEvents(moduleId), limit: 1 })
  return items.length > 0
}

export async function deleteEvents(moduleId: string): Promise<void> {
  await removeAll(keys.moduleEvents(moduleId))
  await transact([remove(keys.moduleDelivery(moduleId))])
}

/** Only one worker at a time delivers events to a module, so that they stay in order. */

/** This is longer than the processing of a message. A killed worker delays the module's events by at most this time. */
const leaseMs = 60_000

export interface Progress {
  /** Consecutive failures: the module was unreachable or rejected its events. */
  failures: number
  backOffUntilMs: number
  /** Events up to this sort key are delivered one by one, to identify the failing one. */
  carefulTo: string
}

const StoredLease = z.object({
  holder: z.string().optional(),
  untilMs: z.number().default(0),
  failures: z.number().default(0),
  backOffUntilMs: z.number().default(0),
  carefulTo: z.string().default(''),
})

export type DeliveryLease = Progress & { moduleId: string; holder: string }

/**
 * Acquires the lease. Returns undefined if another worker holds it. Recognises its own write if the response was lost.
 */
export async function acquireDelivery(moduleId: string): Promise<DeliveryLease | undefined> {
  const [key, holder] = [keys.moduleDelivery(moduleId), newNonce()]
  const set = { holder, untilMs: now() + leaseMs, ttl: nowSeconds() + 2 * eventRetentionSeconds }
  const item = (await tryUpdate(key, { set }, { untilMs: { absentOrAtMost: now() } })) ?? (await get(key))
  const { untilMs, ...stored } = StoredLease.parse(item ?? {})
  if (stored.holder === holder) return { ...stored, moduleId, holder }
  if (isAhead(untilMs, leaseMs)) return undefined
  const isTaken = (await tryUpdate(key, { set }, { untilMs: { is: untilMs } })) !== undefined
  return isTaken ? { ...stored, moduleId, holder } : undefined
}

/** Releases the lease and stores the progress in one write. Has no effect if another worker has taken over. */
export async function releaseDelivery({
  moduleId,
  holder,
  failures,
  backOffUntilMs,
  carefulTo,
}: DeliveryLease): Promise<void> {
  const change = { set: { failures, backOffUntilMs, carefulTo }, remove: ['holder', 'untilMs'] }
  await tryUpdate(keys.moduleDelivery(moduleId), change, { holder: { is: holder } })
}
