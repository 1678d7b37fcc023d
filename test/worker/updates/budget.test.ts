import { exceedsErrorBudget } from '@platform/worker/updates/error-budget'
import { expect, test } from 'vitest'

test.each([
  // share, faults, faultsBeside, usualFaults, over
  [10, 2, 0, 0, false],
  [10, 3, 0, 0, true],
  [50, 3, 1, 0, true],
  [50, 3, 2, 0, false],
  [100, 3, 0, 0, true],
  // As many as its share of what the old one has at the same time: 90 of 90 %.
  [10, 10, 90, 0, false],
  [10, 20, 90, 0, false],
  [10, 21, 90, 0, true],
  [50, 100, 50, 0, false],
  [50, 101, 50, 0, true],
  // Nothing of the old one is left; it used to fail as often.
  [100, 20, 0, 10, false],
  [100, 21, 0, 10, true],
  [100, 20, 500, 0, true],
  // The old one has a good minute, and used to fail.
  [10, 4, 0, 20, false],
  [10, 5, 0, 20, true],
] as const)(
  'at %i percent, %i failures beside %i of the old version, which used to have %i: over the budget is %s',
  (share, faults, faultsBeside, usualFaults, isOver) => {
    expect(exceedsErrorBudget({ share, faults, faultsBeside, usualFaults })).toBe(isOver)
  },
)
