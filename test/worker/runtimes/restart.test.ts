import { shiftClock } from '@platform/core/clock'
import { CrashCounter, restartDelayMs } from '@platform/worker/runtimes/supervisor'
import { expect, test } from 'vitest'

test('pauses double from half a second to half a minute, and are never in step', () => {
  for (const [crashes, longest] of [
    [1, 500],
    [2, 1000],
    [3, 2000],
    [4, 4000],
    [7, 30_000],
    [1000, 30_000],
  ] as const) {
    const pauses = Array.from({ length: 100 }, () => restartDelayMs(crashes))
    expect(Math.max(...pauses)).toBeLessThanOrEqual(longest)
    expect(Math.min(...pauses)).toBeGreaterThanOrEqual(longest * 0.75)
    expect(new Set(pauses).size).toBeGreaterThan(50)
  }
})

test('five crashes in ten minutes are too many, and older ones are forgotten', () => {
  const crashes = new CrashCounter()
  for (const reason of ['one', 'two', 'three', 'four']) crashes.note(reason)
  expect(crashes).toMatchObject({ recent: 4, areTooMany: false, last: 'four' })
  shiftClock(599_000)
  crashes.note('five')
  expect(crashes).toMatchObject({ recent: 5, areTooMany: true, last: 'five' })
  shiftClock(2000)
  expect(crashes).toMatchObject({ recent: 1, areTooMany: false, last: 'five' })
})
