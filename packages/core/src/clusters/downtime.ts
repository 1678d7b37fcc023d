import * as z from 'zod'
import { now } from '../clock.ts'
import { config } from '../config.ts'
import * as keys from '../db/keys.ts'
import { get, type Item, update } from '../db/table.ts'

/** Time without a sweep is downtime of the platform, in which relays may have sent heartbeats in vain. */

/** One late sweep is not a gap. */
const maxPauseMs = Math.max(90_000, config.PLAT_SWEEP_INTERVAL_SECONDS * 1500)

const SweepState = z.object({ sweptAtMs: z.number().optional(), runningSinceMs: z.number().default(0) })

let known = config.PLAT_STARTED_AT_MS

/** As far as this process knows: a later gap is known once `observe` or `observeNow` has read it. */
export const runningSinceMs = (): number => (known <= now() ? known : 0)

/** Updates the known time from the item `keys.sweepState()`. */
export function observe(item: Item | undefined): void {
  known = Math.max(known, SweepState.parse(item ?? {}).runningSinceMs)
}

/** Also counts a gap whose end no sweep has recorded yet. */
export async function observeNow(): Promise<void> {
  const item = await get(keys.sweepState())
  observe(item)
  if (isPaused(item)) known = now()
}

const isPaused = (item: Item | undefined): boolean => {
  const { sweptAtMs = now() } = SweepState.parse(item ?? {})
  return now() - sweptAtMs > maxPauseMs
}

/** Call it at the start of every sweep. */
export async function recordSweep(): Promise<void> {
  await observeNow()
  await update(keys.sweepState(), { set: { sweptAtMs: now(), runningSinceMs: known } })
}
