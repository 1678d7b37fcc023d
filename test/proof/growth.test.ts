import { expect, test } from 'vitest'
import { growthOf } from '../../proof/soak/vitals.ts'

const looks = (valueAt: (minutes: number) => number) =>
  Array.from({ length: 21 }, (_, index) => [index / 2, valueAt(index / 2)] as const)

test('what grows all the time grows by as much a minute', () => {
  expect(growthOf(looks((minutes) => 280 + 3 * minutes))).toBeCloseTo(3)
})

test('what is flat but for single looks does not grow', () => {
  expect(growthOf(looks((minutes) => (minutes % 4 === 0 ? 330 : 280)))).toBe(0)
})

test.for([2, 5, 8])('a step of 20 MB after %s minutes that stays is growth beyond 1 MB a minute', (at) => {
  expect(growthOf(looks((minutes) => (minutes < at ? 280 : 300)))).toBeGreaterThan(1)
})
