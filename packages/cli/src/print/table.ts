import { ageOf, expiryOf } from './age.ts'
import { colorState } from './color.ts'
import { cut, cutMiddle, oneLine, pad, widthOf } from './text.ts'

export interface Column<Row> {
  title: string
  cellValue: (row: Row) => unknown
  /** A terminal shows the column only with `--wide`, because it has details, or ids of resources that have names. */
  isWide?: true
  /** The column shrinks on narrow terminals. `middle` shortens the middle of values, which differ at their end. */
  isFlexible?: true | 'middle'
  /**
   * A state is coloured, and its column does not shrink. In a terminal, a time is an age (`3d`) or the time left (`in
   * 3d`).
   */
  format?: 'state' | 'age' | 'expiry'
}

export interface TableLayout {
  width: number
  isBrief?: boolean
  hasRelativeTimes?: boolean
  hasColor?: boolean
  nowMs?: number
}

const gap = '  '
const minFlexibleWidth = 6
const minWidth = 3
const briefTitles: Record<string, string> = { CREATED: 'AGE', REGISTERED: 'AGE', AT: 'AGE' }

/**
 * Formats a value for a table cell: control characters are visible, times have no milliseconds, and an empty value is
 * `-`.
 */
export function cellOf(value: unknown): string {
  if (value === undefined || value === null || value === '') return '-'
  if (Array.isArray(value)) return value.map(cellOf).join(', ') || '-'
  const text = typeof value === 'string' ? value : JSON.stringify(value)
  return oneLine(text.replace(/^(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d)\.\d+Z$/, '$1Z'))
}

/** Formats rows as aligned columns with titles. No line is wider than `layout.width`. */
export function tableOf<Row>(allColumns: readonly Column<Row>[], rows: readonly Row[], layout: TableLayout): string {
  const columns = layout.isBrief ? allColumns.filter(({ isWide }) => !isWide) : allColumns
  const { hasRelativeTimes, nowMs = Date.now() } = layout
  const titles = columns.map(({ title, format }) =>
    format === 'age' && hasRelativeTimes ? (briefTitles[title] ?? title) : title,
  )
  const cellIn = ({ cellValue, format }: Column<Row>, row: Row): string => {
    const value = cellValue(row)
    if (!hasRelativeTimes || typeof value !== 'string' || Number.isNaN(Date.parse(value))) return cellOf(value)
    if (format === 'age') return ageOf(value, nowMs)
    return format === 'expiry' ? expiryOf(value, nowMs) : cellOf(value)
  }
  const cells = [titles, ...rows.map((row) => columns.map((column) => cellIn(column, row)))]
  const contentWidths = columns.map((_, index) =>
    cells.reduce((maxWidth, line) => Math.max(maxWidth, widthOf(line[index] ?? '')), 0),
  )
  const widths = fitWidths(columns, contentWidths, layout.width)
  const lineOf = (line: readonly string[], isTitle: boolean): string => {
    let remainingWidth = layout.width
    const parts = line.map((cell, index) => {
      const width = Math.max(0, Math.min(widths[index] ?? 0, remainingWidth))
      remainingWidth -= width + gap.length
      const { isFlexible, format } = columns[index] ?? {}
      const shownText = isFlexible === 'middle' && !isTitle ? cutMiddle(cell, width) : cut(cell, width)
      const isColored = format === 'state' && layout.hasColor && !isTitle
      return (isColored ? colorState(shownText) : shownText) + pad('', width - widthOf(shownText))
    })
    return parts.join(gap).trimEnd()
  }
  return cells.map((line, index) => `${lineOf(line, index === 0)}\n`).join('')
}

/** Shrinks flexible columns, then all columns but states, until the row fits or no column can shrink further. */
function fitWidths<Row>(columns: readonly Column<Row>[], contentWidths: readonly number[], width: number): number[] {
  const flexibleWidths = shrinkWidths(contentWidths, width, (index) =>
    columns[index]?.isFlexible ? minFlexibleWidth : Infinity,
  )
  return shrinkWidths(flexibleWidths, width, (index) => (columns[index]?.format === 'state' ? Infinity : minWidth))
}

// Repeatedly shrinks the widest column that is wider than its minimum.
function shrinkWidths(columnWidths: readonly number[], width: number, minOf: (index: number) => number): number[] {
  const widths = [...columnWidths]
  let excessWidth = widths.reduce((total, one) => total + one + gap.length, -gap.length) - width
  while (excessWidth > 0) {
    const shrinkableWidths = widths.map((one, index) => (one > minOf(index) ? one : 0))
    const widestWidth = Math.max(0, ...shrinkableWidths)
    if (widestWidth === 0) break
    const index = shrinkableWidths.indexOf(widestWidth)
    const nextWidth = Math.max(minOf(index), ...shrinkableWidths.filter((one) => one < widestWidth))
    const reduction = Math.min(excessWidth, widestWidth - nextWidth || 1)
    widths[index] = widestWidth - reduction
    excessWidth -= reduction
  }
  return widths
}
