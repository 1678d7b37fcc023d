import { spanText } from './axis.ts'
import styles from './chart.module.css'
import type { ChartData } from './series.ts'

/** The chart's data as a table, newest first. */
export const ChartTable = ({ label, series, points, stepMinutes }: ChartData) => (
  // oxlint-disable-next-line jsx-a11y/no-noninteractive-tabindex -- what scrolls must be reachable by keyboard
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
