import { expect, test } from 'vitest'
import { percentile, range, ratios, shuffled, spread } from './support/statistics.ts'

test('a median is the middle value, or what lies between the two in the middle', () => {
  expect(spread([9, 1, 5])).toEqual({ median: 5, min: 1, max: 9 })
  expect(spread([4, 1, 3, 2])).toEqual({ median: 2.5, min: 1, max: 4 })
})

test('a ratio compares what was measured in the same round', () => {
  // The second round was slow for both: the means would say less than twice, the medians more.
  expect(ratios([2, 40, 4], [1, 20, 2])).toEqual({ median: 2, min: 2, max: 2 })
})

test('a percentile is a value that was measured, and no fewer than that share are as small', () => {
  const hundred = range(100).map((value) => value + 1)
  expect([0.5, 0.95, 0.99, 1].map((share) => percentile(hundred, share))).toEqual([50, 95, 99, 100])
  expect(percentile([7], 0.01)).toBe(7)
})

test('shuffling loses nothing and doubles nothing', () => {
  expect(shuffled(range(50)).toSorted((a, b) => a - b)).toEqual(range(50))
})
