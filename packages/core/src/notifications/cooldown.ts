import * as z from 'zod'
import { nowSeconds } from '../clock.ts'
import { unchanged } from '../db/expression.ts'
import * as keys from '../db/keys.ts'
import { get, backOff, tryUpdate } from '../db/table.ts'
import { storeContention } from '../error.ts'

/** Stores the ids of allowed events, so that a repeated projection gets the same result. */

const cooldownMs = 900_000
/** More events per cluster and type than a retry repeats. */
const maxEvents = 20
const retentionSeconds = 86_400
const maxAttempts = 8

const AllowedEvents = z.array(z.object({ id: z.string(), atMs: z.number() }))
const CooldownRecord = z.object({ passed: z.string().optional() })

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
  for (let attempt = 0; attempt < maxAttempts; attempt++) {
    if (attempt > 0) await backOff(attempt)
    const { passed: storedEvents } = CooldownRecord.parse((await get(key)) ?? {})
    const allowed = AllowedEvents.parse(JSON.parse(storedEvents ?? '[]'))
    if (allowed.some(({ id }) => id === eventId)) return true
    if (allowed.some((event) => Math.abs(atMs - event.atMs) < cooldownMs)) return false
    const updatedEvents = [...allowed, { id: eventId, atMs }].toSorted((a, b) => a.atMs - b.atMs).slice(-maxEvents)
    const change = { set: { passed: JSON.stringify(updatedEvents), ttl: nowSeconds() + retentionSeconds } }
    if (await tryUpdate(key, change, { passed: unchanged(storedEvents) })) return true
  }
  throw storeContention()
}
