import type { ReactNode } from 'react'
import { classes } from './class-names.ts'
import styles from './table.module.css'

export interface Column<Row> {
  /** Empty for a column of buttons. `hiddenTitle` then names the column for screen readers. */
  title: string
  hiddenTitle?: string
  cell: (row: Row) => ReactNode
  isEnd?: boolean
  /** Whether the column is only as wide as its content. */
  isNarrow?: boolean
}

interface TableProps<Row> {
  label: string
  columns: readonly Column<Row>[]
  rows: readonly Row[]
  keyOf: (row: Row) => string
}

/** A table. On narrow screens each row becomes a list of names and values. */
export function Table<Row>({ label, columns, rows, keyOf }: TableProps<Row>) {
  const classOf = ({ isEnd, isNarrow }: Column<Row>) =>
    classes(isEnd && styles['end'], isNarrow && styles['shrink']) || undefined
  return (
    <div className={styles['frame']}>
      <table className={styles['table']} aria-label={label}>
        <thead>
          <tr>
            {columns.map((column) => (
              <th key={column.title || column.hiddenTitle} scope="col" className={classOf(column)}>
                {column.title || <span className="visually-hidden">{column.hiddenTitle ?? 'Actions'}</span>}
              </th>
            ))}
          </tr>
        </thead>
        <tbody>
          {rows.map((row) => (
            <tr key={keyOf(row)}>
              {columns.map((column) => (
                <td key={column.title || column.hiddenTitle} data-label={column.title} className={classOf(column)}>
                  {column.cell(row)}
                </td>
              ))}
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  )
}
