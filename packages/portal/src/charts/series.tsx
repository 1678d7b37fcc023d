import type { BadgeVariant } from '../ui/badge.tsx'
import { classes } from '../ui/class-names.ts'
import styles from './chart.module.css'

/** A series of a chart. It has the colour of its badge variant. */
export interface Series {
  name: string
  variant: BadgeVariant
}

/** The values of all series at one time, or undefined if they are unknown. */
export interface ChartPoint {
  atMs: number
  values: readonly number[] | undefined
}

/** Areas show states; bars show the number of events per step. */
export type SeriesShape = 'areas' | 'bars'

export interface ChartData {
  /** Name of the chart, such as "Jobs over time". */
  label: string
  shape: SeriesShape
  series: readonly Series[]
  /** Oldest first, at equal intervals of `stepMinutes`. */
  points: readonly ChartPoint[]
  stepMinutes: number
}

/** Returns the cumulative values of the series, from the bottom of the stack. */
export const stackedTops = (values: readonly number[]): number[] => {
  let sum = 0
  return values.map((value) => (sum += value))
}

export const maxValue = (points: readonly ChartPoint[]): number =>
  Math.max(0, ...points.map(({ values }) => values?.reduce((sum, value) => sum + value, 0) ?? 0))

export const Legend = ({ series }: { series: readonly Series[] }) => (
  <ul className={styles['legend']}>
    {series.map(({ name, variant }) => (
      <li key={name}>
        <Swatch variant={variant} /> {name}
      </li>
    ))}
  </ul>
)

export const Swatch = ({ variant }: { variant: Series['variant'] }) => (
  <svg width={12} height={12} aria-hidden className={classes(styles['shape'], styles[variant])}>
    <rect width={12} height={12} rx={2} />
  </svg>
)
