import type { BadgeVariant } from '../ui/badge.tsx'

/** A series of a chart, in the colour of its badge. */
export interface Series {
  name: string
  tone: BadgeVariant
}

/** One number per series; undefined if unknown. */
export interface ChartPoint {
  atMs: number
  values: readonly number[] | undefined
}

/** Areas show states, bars show events per step. */
export type SeriesVariant = 'areas' | 'bars'

export interface ChartData {
  /** Such as "Jobs over time". */
  label: string
  look: SeriesVariant
  series: readonly Series[]
  /** Oldest first, at equal steps. */
  points: readonly ChartPoint[]
  stepMinutes: number
}

/** The top edge of each series at a point, stacked from the bottom. */
export const stackedTops = (values: readonly number[]): number[] => {
  let sum = 0
  return values.map((value) => (sum += value))
}

export const maxValue = (points: readonly ChartPoint[]): number =>
  Math.max(0, ...points.map(({ values }) => values?.reduce((sum, value) => sum + value, 0) ?? 0))
