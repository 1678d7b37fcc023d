import { classes } from './class-names.ts'
import type { VirtualColumn } from './virtual-table.tsx'
import styles from './virtual-table.module.css'

/** The columns as CSS grid tracks. */
export const tracks = (columns: readonly { width: string }[]): string => columns.map(({ width }) => width).join(' ')

const nameOf = ({ title, hiddenTitle }: { title: string; hiddenTitle?: string }): string =>
  title || (hiddenTitle ?? 'Actions')

interface HeadProps<Row> {
  columns: readonly VirtualColumn<Row>[]
  isNarrow: boolean
}

/** The column heads. With two lines per row they are visually hidden. */
export const Head = <Row,>({ columns, isNarrow }: HeadProps<Row>) => (
  <div role="rowgroup" className={isNarrow ? 'visually-hidden' : styles['head']}>
    <div role="row" aria-rowindex={1} className={styles['heads']} style={{ gridTemplateColumns: tracks(columns) }}>
      {columns.map((column) => (
        <div key={nameOf(column)} role="columnheader" className={classes(column.isEnd && styles['end'])}>
          {column.title || <span className="visually-hidden">{nameOf(column)}</span>}
        </div>
      ))}
    </div>
  </div>
)

interface CellsProps<Row> {
  columns: readonly VirtualColumn<Row>[]
  row: Row | undefined
}

const Cell = <Row,>({ column, row }: { column: VirtualColumn<Row>; row: Row | undefined }) => (
  <div role="cell" className={classes(styles['cell'], column.isEnd && styles['end'])}>
    {row === undefined ? <span className={styles['blank']} /> : column.cell(row)}
  </div>
)

export const Cells = <Row,>({ columns, row }: CellsProps<Row>) =>
  columns.map((column) => <Cell key={nameOf(column)} column={column} row={row} />)

export const NarrowCells = <Row,>({ columns, row }: CellsProps<Row>) => (
  <>
    <div className={styles['first']}>
      <Cells columns={[...at(columns, 'lead'), ...at(columns, 'mark')]} row={row} />
    </div>
    <div className={styles['second']}>
      <Cells columns={at(columns, undefined)} row={row} />
    </div>
  </>
)

const at = <Row,>(columns: readonly VirtualColumn<Row>[], place: VirtualColumn<Row>['narrow']) =>
  columns.filter(({ narrow }) => narrow === place)
