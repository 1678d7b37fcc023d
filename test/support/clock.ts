import { shiftClock } from '@platform/core/clock'
import { afterEach } from 'vitest'

let shiftedMs = 0

/** Advances the clock by `ms`. It is reset after the test. */
export function advanceClock(ms: number): void {
  shiftedMs += ms
  shiftClock(ms)
}

afterEach(() => {
  shiftClock(-shiftedMs)
  shiftedMs = 0
})
