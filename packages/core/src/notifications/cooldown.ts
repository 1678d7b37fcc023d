import * as z from 'zod'
import { nowSeconds } from '../clock.ts'
import { unchangedCondition } from '../db/expression.ts'
import * as keys from '../db/keys.ts'
import { get, backOff, type Item, tryUpdate } from '../db/table.ts'
import { storeContentionError } from '../error.ts'

/**
 * One item per cluster and notification type stores the ids of allowed events, so that a repeated projection gets the
 * same result. If a cooldown refuses an event, the item becomes due for the sweep at the end of the cooldown.
 */

const cooldownMs = 900_000
/** Greater than the number of events per cluster and type that a retry repeats. */
const maxEvents = 20
const retentionSeconds = 86_400
const maxAttempts = 8

const AllowedEvents = z.array(z.object({ id: z.string(), atMs: z.number() }))
const CooldownRecord = z.object({ passed: z.string().optional(), refusedAtMs: z.number().optional() })

/** `refusedAtMs` is the time of the newest event that a cooldown refused. */
export function parseCooldown(item: Item | undefined) {
  const { passed, refusedAtMs } = CooldownRecord.parse(item ?? {})
  return { passed, refusedAtMs, allowedEvents: AllowedEvents.parse(JSON.parse(passed ?? '[]')) }
}

export interface CooldownContext {
  organisationId: string
  clusterId: string
  type: string
  eventId: string
  atMs: number
}

export async function claimCooldown({
  organisationId,
  clusterId,
  type,
  eventId,
  atMs,
}: CooldownContext): Promise<boolean> {
  const key = keys.notificationCooldown(organisationId, clusterId, type)
  const ttl = nowSeconds() + retentionSeconds
  for (let attempt = 0; attempt < maxAttempts; attempt++) {
    if (attempt > 0) await backOff(attempt)
    const { passed, refusedAtMs = 0, allowedEvents } = parseCooldown(await get(key))
    if (allowedEvents.some(({ id }) => id === eventId)) return true
    const condition = { passed: unchangedCondition(passed) }
    const blockingEvent = allowedEvents.findLast((event) => Math.abs(atMs - event.atMs) < cooldownMs)
    if (blockingEvent === undefined) {
      const set = { passed: withEvent(allowedEvents, { id: eventId, atMs }), ttl }
      if (await tryUpdate(key, { set }, condition)) return true
    } else {
      // The notification of a later event also covers this one.
      if (blockingEvent.atMs > atMs) return false
      const set = {
        refusedAtMs: Math.max(refusedAtMs, atMs),
        ttl,
        ...keys.dueIndexKeys(clusterId, blockingEvent.atMs + cooldownMs),
      }
      if (await tryUpdate(key, { set }, condition)) return false
    }
  }
  throw storeContentionError()
}

/**
 * Marks the refused event as handled. `event` is the event that was reported, if any; it starts the next cooldown.
 */
export async function concludeRefusal(item: Item, event: { id: string; atMs: number } | undefined): Promise<void> {
  const { passed, refusedAtMs, allowedEvents } = parseCooldown(item)
  const change = { ...(event && { set: { passed: withEvent(allowedEvents, event) } }) }
  const key = { pk: String(item['pk']), sk: String(item['sk']) }
  await tryUpdate(
    key,
    { ...change, remove: ['refusedAtMs', 'duepk', 'duesk'] },
    { passed: unchangedCondition(passed), refusedAtMs: unchangedCondition(refusedAtMs) },
  )
}

const withEvent = (allowedEvents: z.infer<typeof AllowedEvents>, event: { id: string; atMs: number }): string =>
  JSON.stringify([...allowedEvents, event].toSorted((a, b) => a.atMs - b.atMs).slice(-maxEvents))
