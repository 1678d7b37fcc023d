import { Link, type LinkProps } from '@tanstack/react-router'
import { type ReactNode, useEffect } from 'react'
import { classes } from './class-names.ts'
import { type RowHeight, useWindowRows } from './use-window-rows.ts'
import { Cells, Head, NarrowCells, tracks } from './virtual-cells.tsx'
import styles from './virtual-table.module.css'

/** One column of a long list. */
export interface VirtualColumn<Row> {
  /** What stands above it; '' for a column of buttons, which then names itself by `hiddenTitle`. */
  title: string
  hiddenTitle?: string
  /** One line of text, a link or a badge: what does not fit is cut off with an ellipsis. */
  cell: (row: Row) => ReactNode
  /** A track of a CSS grid, such as `minmax(10rem, 3fr)` or `8rem`. */
  width: string
  isEnd?: boolean
  /** On a narrow screen: at the start of the first line, at its end, or not at all. Others stand on the second line. */
  narrow?: 'lead' | 'mark' | 'hidden'
}

/** What every long list is told, wherever its rows are from. */
export interface VirtualVariant<Row> {
  /** What the list is of, for assistive technology. */
  label: string
  columns: readonly VirtualColumn<Row>[]
  rowKey: (row: Row) => string
  rowHeight?: RowHeight
}

/** On a list that is narrower than this, no row has one line. */
const narrowRem = 40
const gapRem = 1
const marginRem = 1.5

/** The room that columns take at least: what their widths begin with, and what stands between them. */
const roomRem = (columns: readonly { width: string }[]): number =>
  columns.reduce((sum, { width }) => sum + gapRem + Number(/[\d.]+(?=rem)/.exec(width)?.[0] ?? 0), marginRem - gapRem)

interface VirtualTableProps<Row> extends VirtualVariant<Row> {
  count: number
  /** Undefined for a row that has not come yet: its place is shown. */
  rowAt: (index: number) => Row | undefined
  /** Hears which rows the page holds just now, the last one included. */
  onRange?: (first: number, last: number) => void
  /** Rows that are not there do not come by themselves: nothing says that they do. */
  isStuck?: boolean
}

/** More rows than this a browser cannot scroll: elements end at some 17 million pixels. */
const mostRows = 200_000

const usual: RowHeight = { wide: 2.75, narrow: 4 }

/**
 * A table of any length that scrolls with the page: only rows in sight are elements. Arrow keys, Page Up and Down, Home and
 * End go from row to row. For rows that are all here; `PagedTable` fetches them as they are needed.
 */
export function VirtualTable<Row>({ label, columns, rowKey, rowHeight = usual, ...rest }: VirtualTableProps<Row>) {
  const { rowAt, onRange, isStuck = false } = rest
  const count = Math.min(rest.count, mostRows)
  const keyAt = (index: number) => {
    const row = index < 0 ? undefined : rowAt(index)
    return row === undefined ? undefined : rowKey(row)
  }
  const { list, isNarrow, virtualizer, topPx } = useWindowRows({
    count,
    height: rowHeight,
    leastRem: Math.max(narrowRem, roomRem(columns)),
    keyAt,
  })
  const items = virtualizer.getVirtualItems()
  const { startIndex, endIndex } = virtualizer.range ?? { startIndex: 0, endIndex: 0 }
  useEffect(() => onRange?.(startIndex, endIndex), [onRange, startIndex, endIndex])
  const isWaiting = !isStuck && items.some(({ index }) => rowAt(index) === undefined)
  const keys = new Set<string>()
  return (
    <div
      role="table"
      aria-label={label}
      aria-rowcount={rest.count + 1}
      aria-colcount={columns.length}
      aria-busy={isWaiting}
      className={styles['table']}
    >
      <Head columns={columns} isNarrow={isNarrow} />
      <div role="rowgroup" ref={list} className={styles['rows']} style={{ blockSize: virtualizer.getTotalSize() }}>
        {items.map(({ index, start, size }) => {
          const row = rowAt(index)
          const key = freshKey(keys, row === undefined ? `row ${index}` : rowKey(row), index)
          return (
            <div
              key={key}
              role="row"
              aria-rowindex={index + 2}
              data-index={index}
              data-blank={row === undefined || undefined}
              tabIndex={-1}
              className={classes(styles['row'], isNarrow && styles['narrow'])}
              style={{
                blockSize: size,
                transform: `translateY(${start - topPx}px)`,
                ...(!isNarrow && { gridTemplateColumns: tracks(columns) }),
              }}
            >
              {isNarrow ? <NarrowCells columns={columns} row={row} /> : <Cells columns={columns} row={row} />}
            </div>
          )
        })}
      </div>
      {rest.count > mostRows && (
        <p className={styles['note']}>
          These are the first {mostRows.toLocaleString()}. Narrow the list down by a filter to see others.
        </p>
      )}
    </div>
  )
}

/** Pages that were fetched at different moments may hold a row twice, for as long as it takes to fetch them again. */
function freshKey(taken: Set<string>, key: string, index: number): string {
  const fresh = taken.has(key) ? `${key} ${index}` : key
  taken.add(fresh)
  return fresh
}

/** A link in a row that is followed wherever the row is clicked. Other buttons and links of the row stay what they are. */
export const RowLink = ({ children, ...rest }: LinkProps & { children: ReactNode }) => (
  <Link {...rest} className={styles['link']}>
    {children}
  </Link>
)
