import type { BadgeVariant } from '../ui/badge.tsx'

/** One of the things that a chart counts. It is drawn in the tone that badges of it have. */
export interface Series {
  name: string
  tone: BadgeVariant
}

/** What was counted in one step of time, one number for each series; undefined where nobody knows. */
export interface ChartPoint {
  atMs: number
  values: readonly number[] | undefined
}

/** How numbers are drawn: what stood at each time, or what happened in each step. */
export type SeriesVariant = 'areas' | 'bars'

/** What a chart shows. */
export interface ChartData {
  /** What the numbers are of, such as "Jobs over time". */
  label: string
  look: SeriesVariant
  series: readonly Series[]
  /** Oldest first, a step apart. */
  points: readonly ChartPoint[]
  stepMinutes: number
}

/** The top edge of each series at a point, stacked from the bottom. */
export const stackedTops = (values: readonly number[]): number[] => {
  let sum = 0
  return values.map((value) => (sum += value))
}

/** The highest stack. */
export const maxValue = (points: readonly ChartPoint[]): number =>
  Math.max(0, ...points.map(({ values }) => values?.reduce((sum, value) => sum + value, 0) ?? 0))
