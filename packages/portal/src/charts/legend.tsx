import { classes } from '../ui/class-names.ts'
import styles from './chart.module.css'
import type { Series } from './series.ts'

export const Legend = ({ series }: { series: readonly Series[] }) => (
  <ul className={styles['legend']}>
    {series.map(({ name, tone }) => (
      <li key={name}>
        <Swatch tone={tone} /> {name}
      </li>
    ))}
  </ul>
)

/** The colour of a series. */
export const Swatch = ({ tone }: { tone: Series['tone'] }) => (
  <svg width={12} height={12} aria-hidden className={classes(styles['shape'], styles[tone])}>
    <rect width={12} height={12} rx={2} />
  </svg>
)
