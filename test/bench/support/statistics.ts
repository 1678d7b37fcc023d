/** Several measurements of one thing. */
export interface Spread {
  median: number
  min: number
  max: number
}

export function spread(values: readonly number[]): Spread {
  const sorted = values.toSorted((a, b) => a - b)
  const middle = sorted.length / 2
  const median = ((sorted[Math.ceil(middle) - 1] ?? 0) + (sorted[Math.floor(middle)] ?? 0)) / 2
  return { median, min: sorted[0] ?? 0, max: sorted.at(-1) ?? 0 }
}

/** The value that this share of all values does not exceed. */
export const percentile = (values: readonly number[], share: number): number =>
  values.toSorted((a, b) => a - b)[Math.max(0, Math.ceil(values.length * share) - 1)] ?? 0

/** Pairs measurements of the same round: what slows a round down slows both. */
export const ratios = (values: readonly number[], floor: readonly number[]): Spread =>
  spread(values.map((value, round) => value / (floor[round] ?? 0)))

/** The same things in a random order. */
export const shuffled = <Thing>(things: readonly Thing[]): Thing[] =>
  things
    .map((thing) => ({ thing, rank: Math.random() }))
    .toSorted((a, b) => a.rank - b.rank)
    .map(({ thing }) => thing)

export const range = (count: number): number[] => Array.from({ length: count }, (_, index) => index)
