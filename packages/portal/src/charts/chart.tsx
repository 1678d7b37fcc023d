import { ChartNoAxesColumn, Table2 } from 'lucide-react'
import { type ReactNode, useId, useState } from 'react'
import { IconButton } from '../ui/button.tsx'
import { spanText } from './axis.ts'
import styles from './chart.module.css'
import { Plot } from './plot.tsx'
import { type ChartData, Legend, maxValue } from './series.tsx'

interface ChartProps extends ChartData {
  /** Shown instead of the chart if all values are 0 or unknown. */
  empty: ReactNode
}

/**
 * A stacked chart of numbers over time, which can be explored by pointer or keyboard and shown as a table. Times are in
 * the browser's time zone.
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
