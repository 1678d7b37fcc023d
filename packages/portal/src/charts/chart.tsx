import { ChartNoAxesColumn, Table2 } from 'lucide-react'
import { type ReactNode, useId, useState } from 'react'
import { IconButton } from '../ui/button.tsx'
import { spanText } from './axis.ts'
import styles from './chart.module.css'
import { Plot } from './plot.tsx'
import { type ChartData, Legend, maxValue } from './series.tsx'

interface ChartProps extends ChartData {
  /** Replaces a chart without data. */
  empty: ReactNode
}

/**
 * Numbers over time, as a stacked chart that pointer and keyboard explore, or as a table. Times use the browser's zone.
 */
export function Chart({ empty, ...chart }: ChartProps) {
  const [isTable, setIsTable] = useState(false)
  const id = useId()
  if (maxValue(chart.points) === 0) return empty
  return (
    <figure className={styles['chart']} aria-labelledby={id}>
      <figcaption className={styles['caption']}>
        <span id={id} className="visually-hidden">
          {chart.label}
        </span>
        <Legend series={chart.series} />
        <IconButton
          icon={isTable ? ChartNoAxesColumn : Table2}
          label={isTable ? 'Show as chart' : 'Show as table'}
          className={styles['toggle']}
          onClick={() => setIsTable(!isTable)}
        />
      </figcaption>
      {isTable ? <ChartTable {...chart} /> : <Plot {...chart} />}
    </figure>
  )
}

/** The chart's data as a table, newest first. */
const ChartTable = ({ label, series, points, stepMinutes }: ChartData) => (
  // oxlint-disable-next-line jsx-a11y/no-noninteractive-tabindex -- scrollable content must be reachable by keyboard
  <div className={styles['scroll']} role="region" aria-label={`${label}, as a table`} tabIndex={0}>
    <table className={styles['table']} aria-label={label}>
      <thead>
        <tr>
          <th scope="col">Time</th>
          {series.map(({ name }) => (
            <th key={name} scope="col">
              {name}
            </th>
          ))}
        </tr>
      </thead>
      <tbody>
        {points.toReversed().map(({ atMs, values }) => (
          <tr key={atMs}>
            <th scope="row">{spanText(atMs, stepMinutes)}</th>
            {series.map(({ name }, index) => (
              <td key={name}>{values?.[index] ?? 'unknown'}</td>
            ))}
          </tr>
        ))}
      </tbody>
    </table>
  </div>
)
