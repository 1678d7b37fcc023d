import { Link, type LinkProps } from '@tanstack/react-router'
import { ArrowDown, ArrowUp } from 'lucide-react'
import { type ReactNode, type RefObject, useEffect, useRef } from 'react'
import { classes } from './class-names.ts'
import { SelectField } from './field.tsx'
import type { Fold } from './folded-rows.ts'
import { type RowHeight, useWindowRows } from './use-window-rows.ts'
import styles from './virtual-table.module.css'

export interface VirtualColumn<Row> {
  /** Empty for a column of buttons. `hiddenTitle` then names the column for screen readers. */
  title: string
  hiddenTitle?: string
  /** Content of a cell: one line of text, a link or a badge. Overflow is truncated. */
  cell: (row: Row, fold?: Fold) => ReactNode
  /** CSS grid track, such as `minmax(10rem, 3fr)` or `8rem`. */
  width: string
  isEnd?: boolean
  /** The name of the order by this column. */
  sort?: string
  /**
   * Position on narrow screens: at the start or end of the first line, before it (a checkbox), or hidden. Other columns
   * are on the second line.
   */
  narrow?: 'lead' | 'start' | 'end' | 'hidden'
}

export interface VirtualVariant<Row> {
  label: string
  columns: readonly VirtualColumn<Row>[]
  rowKey: (row: Row) => string
  rowHeight?: RowHeight
  sorting?: Sorting
}

/**
 * The order of a list. `value` is the `sort` of a column, with a leading `-` for descending order; undefined for the
 * default order.
 */
export interface Sorting {
  value: string | undefined
  onChange: (sort: string | undefined) => void
}

// Below this width rows always have two lines.
const narrowRem = 40
const gapRem = 1
const marginRem = 1.5

// Returns the minimum width of a row in rem: all columns, the gaps between them and the side margins.
const minWidthRem = (columns: readonly { width: string }[]): number =>
  columns.reduce((sum, { width }) => sum + gapRem + Number(/[\d.]+(?=rem)/.exec(width)?.[0] ?? 0), marginRem - gapRem)

interface VirtualTableProps<Row> extends VirtualVariant<Row> {
  count: number
  /** Returns undefined for a row that is not loaded; a placeholder is then shown. */
  rowAt: (index: number) => Row | undefined
  /** Returns the rows that are folded into a row. */
  foldAt?: (index: number) => Fold | undefined
  /** Called with the indexes of the first and the last rendered row. */
  onRange?: (firstIndex: number, lastIndex: number) => void
  /** Whether missing rows could not be loaded. The table is then not marked as busy. */
  isStuck?: boolean
}

// Browsers limit the height of an element to about 17 million pixels.
const maxRows = 200_000

const defaultHeight: RowHeight = { wide: 2.75, narrow: 4 }

/**
 * A table that scrolls with the page and renders only the visible rows and some around them. Arrow keys, Page Up, Page
 * Down, Home and End move between rows. `PagedTable` adds fetching on demand.
 */
export function VirtualTable<Row>({
  label,
  columns,
  rowKey,
  rowHeight = defaultHeight,
  sorting,
  ...rest
}: VirtualTableProps<Row>) {
  const { rowAt, foldAt, onRange, isStuck = false } = rest
  const count = Math.min(rest.count, maxRows)
  const keyAt = (index: number) => {
    const row = index < 0 ? undefined : rowAt(index)
    return row === undefined ? undefined : rowKey(row)
  }
  const { list, isNarrow, virtualizer, topPx } = useWindowRows({
    count,
    height: rowHeight,
    minRem: Math.max(narrowRem, minWidthRem(columns)),
    keyAt,
  })
  const items = virtualizer.getVirtualItems()
  const { startIndex, endIndex } = virtualizer.range ?? { startIndex: 0, endIndex: 0 }
  // The braces drop the result of the callback, which React would call as a cleanup function.
  useEffect(() => {
    onRange?.(startIndex, endIndex)
  }, [onRange, startIndex, endIndex])
  const isWaiting = !isStuck && items.some(({ index }) => rowAt(index) === undefined)
  const keys = new Set<string>()
  return (
    <>
      {isNarrow && sorting && <SortField columns={columns} sorting={sorting} />}
      <div
        role="table"
        aria-label={label}
        aria-rowcount={rest.count + 1}
        aria-colcount={columns.length}
        aria-busy={isWaiting}
        className={styles['table']}
      >
        <Head columns={columns} isNarrow={isNarrow} sorting={sorting} />
        <div role="rowgroup" ref={list} className={styles['rows']} style={{ blockSize: virtualizer.getTotalSize() }}>
          {items.map(({ index, start, size }) => {
            const row = rowAt(index)
            const key = uniqueKey(keys, row === undefined ? `row ${index}` : rowKey(row), index)
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
                {isNarrow ? (
                  <NarrowCells columns={columns} row={row} fold={foldAt?.(index)} />
                ) : (
                  <Cells columns={columns} row={row} fold={foldAt?.(index)} />
                )}
              </div>
            )
          })}
        </div>
        {rest.count > maxRows && (
          <p className={styles['note']}>
            These are the first {maxRows.toLocaleString('en')}. Filter the list to see others.
          </p>
        )}
      </div>
    </>
  )
}

// Pages that were fetched at different times may contain the same row.
function uniqueKey(usedKeys: Set<string>, key: string, index: number): string {
  const unusedKey = usedKeys.has(key) ? `${key} ${index}` : key
  usedKeys.add(unusedKey)
  return unusedKey
}

/** A link that covers its whole row. Other controls of the row still receive clicks. */
export const RowLink = ({ children, ...rest }: LinkProps & { children: ReactNode }) => (
  <Link {...rest} className={styles['link']}>
    {children}
  </Link>
)

const tracks = (columns: readonly { width: string }[]): string => columns.map(({ width }) => width).join(' ')

const nameOf = ({ title, hiddenTitle }: { title: string; hiddenTitle?: string }): string =>
  title || (hiddenTitle ?? 'Actions')

interface HeadProps<Row> {
  columns: readonly VirtualColumn<Row>[]
  isNarrow: boolean
  sorting: Sorting | undefined
}

// With two lines per row the column heads do not apply, so they are only for screen readers.
const Head = <Row,>({ columns, isNarrow, sorting }: HeadProps<Row>) => (
  <div role="rowgroup" className={isNarrow ? 'visually-hidden' : styles['head']}>
    <div role="row" aria-rowindex={1} className={styles['heads']} style={{ gridTemplateColumns: tracks(columns) }}>
      {columns.map((column) => (
        <div
          key={nameOf(column)}
          role="columnheader"
          aria-sort={directionOf(column.sort, sorting)}
          className={classes(column.isEnd && styles['end'])}
        >
          {column.sort !== undefined && sorting !== undefined && !isNarrow ? (
            <SortButton title={column.title} sort={column.sort} sorting={sorting} />
          ) : (
            column.title || <span className="visually-hidden">{nameOf(column)}</span>
          )}
        </div>
      ))}
    </div>
  </div>
)

function directionOf(sort: string | undefined, sorting: Sorting | undefined) {
  if (sort === undefined || sorting === undefined) return undefined
  if (sorting.value === sort) return 'ascending'
  return sorting.value === `-${sort}` ? 'descending' : 'none'
}

let pressedControl: string | undefined

// Restores the focus of a sort control. Another order is another list, whose controls are mounted again.
function useRestoredFocus<Place extends HTMLElement>(key: string): RefObject<Place | null> {
  const place = useRef<Place>(null)
  useEffect(() => {
    if (pressedControl !== key || document.activeElement !== document.body) return
    const control = place.current?.querySelector('select') ?? place.current
    control?.focus({ preventScroll: true })
    pressedControl = undefined
  }, [key])
  return place
}

// Changes the order from ascending to descending, and then to the default.
function SortButton({ title, sort, sorting }: { title: string; sort: string; sorting: Sorting }) {
  const direction = directionOf(sort, sorting)
  const nextSort = { none: sort, ascending: `-${sort}`, descending: undefined }[direction ?? 'none']
  const Icon = direction === 'descending' ? ArrowDown : ArrowUp
  const button = useRestoredFocus<HTMLButtonElement>(sort)
  const press = () => {
    pressedControl = sort
    sorting.onChange(nextSort)
  }
  return (
    <button ref={button} type="button" className={styles['sort']} onClick={press}>
      {title}
      <Icon size={14} aria-hidden data-shown={direction !== 'none' || undefined} />
    </button>
  )
}

// On narrow screens no column heads are visible.
function SortField<Row>({ columns, sorting }: { columns: readonly VirtualColumn<Row>[]; sorting: Sorting }) {
  const options = columns.flatMap(({ title, sort }) =>
    sort === undefined
      ? []
      : [
          { value: sort, label: `${title}, ascending` },
          { value: `-${sort}`, label: `${title}, descending` },
        ],
  )
  const field = useRestoredFocus<HTMLDivElement>('field')
  return (
    <div ref={field}>
      <SelectField
        name="sort"
        label="Sort by"
        value={sorting.value ?? ''}
        options={[{ value: '', label: 'Newest first' }, ...options]}
        onChange={(value) => {
          pressedControl = 'field'
          sorting.onChange(value || undefined)
        }}
      />
    </div>
  )
}

interface RowProps<Row> {
  row: Row | undefined
  fold: Fold | undefined
}

interface CellsProps<Row> extends RowProps<Row> {
  columns: readonly VirtualColumn<Row>[]
}

const Cell = <Row,>({ column, row, fold }: RowProps<Row> & { column: VirtualColumn<Row> }) => (
  <div
    role="cell"
    className={classes(styles['cell'], column.isEnd && styles['end'], column.narrow === 'start' && styles['wide'])}
  >
    {row === undefined ? <span className={styles['blank']} /> : column.cell(row, fold)}
  </div>
)

const Cells = <Row,>({ columns, ...row }: CellsProps<Row>) =>
  columns.map((column) => <Cell key={nameOf(column)} column={column} {...row} />)

const NarrowCells = <Row,>({ columns, ...row }: CellsProps<Row>) => (
  <>
    <div className={styles['first']}>
      <Cells columns={(['lead', 'start', 'end'] as const).flatMap((position) => placed(columns, position))} {...row} />
    </div>
    <div className={styles['second']}>
      <Cells columns={placed(columns, undefined)} {...row} />
    </div>
  </>
)

const placed = <Row,>(columns: readonly VirtualColumn<Row>[], position: VirtualColumn<Row>['narrow']) =>
  columns.filter(({ narrow }) => narrow === position)
