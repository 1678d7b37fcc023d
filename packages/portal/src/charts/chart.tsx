import { ChartNoAxesColumn, Table2 } from 'lucide-react'
import { type ReactNode, useId, useState } from 'react'
import { IconButton } from '../ui/button.tsx'
import styles from './chart.module.css'
import { ChartTable } from './chart-table.tsx'
import { Legend } from './legend.tsx'
import { Plot } from './plot.tsx'
import { type ChartData, maxValue } from './series.ts'

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
