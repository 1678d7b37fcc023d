import { shiftClock } from '@platform/core/clock'
import { afterEach } from 'vitest'

let shiftedMs = 0

/** Advances the clock until the test ends. */
export function advanceClock(ms: number): void {
  shiftedMs += ms
  shiftClock(ms)
}

afterEach(() => {
  shiftClock(-shiftedMs)
  shiftedMs = 0
})
