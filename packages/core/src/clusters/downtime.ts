import * as z from 'zod'
import { now } from '../clock.ts'
import { config } from '../config.ts'
import * as keys from '../db/keys.ts'
import { get, type Item, update } from '../db/table.ts'

/** Time without a sweep counts as downtime of the platform, in which heartbeats may have been lost. */

/** The longest time between two sweeps that is not a gap. A sweep may be late by half an interval or more. */
const maxPauseMs = Math.max(90_000, config.PLAT_SWEEP_INTERVAL_SECONDS * 1500)

/**
 * If the last sweep is further in the future than this, the clock was set back. The clocks of several machines may
 * differ by less.
 */
const toleranceMs = 10_000

/** Limits the full sweeps, because an item may always fail. */
const maxFullSweeps = 10

const SweepState = z.object({
  sweptAtMs: z.number().optional(),
  runningSinceMs: z.number().default(0),
  /**
   * The number of remaining sweeps that check all items after the clock was set back. A sweep without a
   * failure sets it to 0.
   */
  fullSweeps: z.number().default(0),
})

let knownStartMs = config.PLAT_STARTED_AT_MS

const zeroIfFuture = (ms: number): number => (ms <= now() ? ms : 0)

/**
 * Returns the time at which the current run of the platform began, as far as this process knows. `observe` and
 * `observeNow` update the time after a gap.
 */
export const runningSinceMs = (): number => zeroIfFuture(knownStartMs)

/** `item` is the item of `keys.sweepState()`. */
export function observe(item: Item | undefined): void {
  knownStartMs = Math.max(zeroIfFuture(knownStartMs), zeroIfFuture(SweepState.parse(item ?? {}).runningSinceMs))
}

/** Like `observe`, but reads the item itself. Also detects a gap that has not ended, by the age of the last sweep. */
export async function observeNow(): Promise<z.infer<typeof SweepState>> {
  const item = await get(keys.sweepState())
  observe(item)
  const state = SweepState.parse(item ?? {})
  if (now() - (state.sweptAtMs ?? now()) > maxPauseMs) knownStartMs = now()
  return state
}

/**
 * Records the start of a sweep. Returns whether the sweep must check all items, because their due times may be too late
 * after the clock was set back.
 */
export async function recordSweep(): Promise<boolean> {
  const state = await observeNow()
  const wasSetBack = (state.sweptAtMs ?? 0) > now() + toleranceMs
  const fullSweeps = wasSetBack ? maxFullSweeps : state.fullSweeps
  const change = { sweptAtMs: now(), runningSinceMs: knownStartMs, fullSweeps: Math.max(0, fullSweeps - 1) }
  await update(keys.sweepState(), { set: change })
  return fullSweeps > 0
}

export async function endFullSweeps(): Promise<void> {
  await update(keys.sweepState(), { set: { fullSweeps: 0 } })
}
