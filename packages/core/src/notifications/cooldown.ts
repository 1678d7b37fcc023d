import * as z from 'zod'
import { nowSeconds } from '../clock.ts'
import { unchanged } from '../db/expression.ts'
import * as keys from '../db/keys.ts'
import { get, backOff, tryUpdate } from '../db/table.ts'
import { storeContention } from '../error.ts'

/**
 * Limits notifications of one type about one cluster to one in 15 minutes. The ids of allowed events are stored, so
 * that a repeated call returns the same.
 */

const coolDownMs = 900_000
/** Stored event ids per cluster: more than are ever repeated together. */
const remembered = 20
const keepSeconds = 86_400
const attempts = 8

const Passed = z.array(z.object({ id: z.string(), atMs: z.number() }))
const Row = z.object({ passed: z.string().optional() })

/** A possible notification. */
export interface CooldownContext {
  organisationId: string
  clusterId: string
  type: string
  eventId: string
  atMs: number
}

/** Whether an event may be notified. One call, and one more if allowed. */
export async function claimCooldown({
  organisationId,
  clusterId,
  type,
  eventId,
  atMs,
}: CooldownContext): Promise<boolean> {
  const key = keys.notificationCooldown(organisationId, clusterId, type)
  for (let attempt = 0; attempt < attempts; attempt++) {
    if (attempt > 0) await backOff(attempt)
    const { passed: stored } = Row.parse((await get(key)) ?? {})
    const passed = Passed.parse(JSON.parse(stored ?? '[]'))
    if (passed.some(({ id }) => id === eventId)) return true
    if (passed.some((other) => Math.abs(atMs - other.atMs) < coolDownMs)) return false
    const next = [...passed, { id: eventId, atMs }].toSorted((a, b) => a.atMs - b.atMs).slice(-remembered)
    const change = { set: { passed: JSON.stringify(next), ttl: nowSeconds() + keepSeconds } }
    if (await tryUpdate(key, change, { passed: unchanged(stored) })) return true
  }
  throw storeContention()
}
