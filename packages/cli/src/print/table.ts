import { ageOf, expiryOf } from './age.ts'
import { colorState } from './color.ts'
import { cut, cutMiddle, oneLine, pad, widthOf } from './text.ts'

export interface Column<Row> {
  title: string
  of: (row: Row) => unknown
  /** A terminal shows the column only with `--wide`, because it has details, or ids of resources that have names. */
  isWide?: true
  /** The column shrinks on narrow terminals. `middle` shortens the middle of values, which differ at their end. */
  isFlexible?: true | 'middle'
  /**
   * A state is coloured, and its column does not shrink. In a terminal, a time is an age (`3d`) or the time left (`in
   * 3d`).
   */
  as?: 'state' | 'age' | 'expiry'
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
export function tableOf<Row>(all: readonly Column<Row>[], rows: readonly Row[], layout: TableLayout): string {
  const columns = layout.isBrief ? all.filter(({ isWide }) => !isWide) : all
  const { hasRelativeTimes, nowMs = Date.now() } = layout
  const titles = columns.map(({ title, as }) =>
    as === 'age' && hasRelativeTimes ? (briefTitles[title] ?? title) : title,
  )
  const cellIn = ({ of, as }: Column<Row>, row: Row): string => {
    const value = of(row)
    if (!hasRelativeTimes || typeof value !== 'string' || Number.isNaN(Date.parse(value))) return cellOf(value)
    if (as === 'age') return ageOf(value, nowMs)
    return as === 'expiry' ? expiryOf(value, nowMs) : cellOf(value)
  }
  const cells = [titles, ...rows.map((row) => columns.map((column) => cellIn(column, row)))]
  const contentWidths = columns.map((_, index) =>
    cells.reduce((most, line) => Math.max(most, widthOf(line[index] ?? '')), 0),
  )
  const widths = fitWidths(columns, contentWidths, layout.width)
  const lineOf = (line: readonly string[], isTitle: boolean): string => {
    let left = layout.width
    const parts = line.map((cell, index) => {
      const width = Math.max(0, Math.min(widths[index] ?? 0, left))
      left -= width + gap.length
      const { isFlexible, as } = columns[index] ?? {}
      const shown = isFlexible === 'middle' && !isTitle ? cutMiddle(cell, width) : cut(cell, width)
      const isColored = as === 'state' && layout.hasColor && !isTitle
      return (isColored ? colorState(shown) : shown) + pad('', width - widthOf(shown))
    })
    return parts.join(gap).trimEnd()
  }
  return cells.map((line, index) => `${lineOf(line, index === 0)}\n`).join('')
}

/** Shrinks flexible columns, then all columns but states, until the row fits or no column can shrink further. */
function fitWidths<Row>(columns: readonly Column<Row>[], contentWidths: readonly number[], width: number): number[] {
  const flexible = shrinkWidths(contentWidths, width, (index) =>
    columns[index]?.isFlexible ? minFlexibleWidth : Infinity,
  )
  return shrinkWidths(flexible, width, (index) => (columns[index]?.as === 'state' ? Infinity : minWidth))
}

// Repeatedly shrinks the widest column that is wider than its minimum.
function shrinkWidths(from: readonly number[], width: number, minimumOf: (index: number) => number): number[] {
  const widths = [...from]
  let excess = widths.reduce((total, one) => total + one + gap.length, -gap.length) - width
  while (excess > 0) {
    const shrinkable = widths.map((one, index) => (one > minimumOf(index) ? one : 0))
    const widest = Math.max(0, ...shrinkable)
    if (widest === 0) break
    const index = shrinkable.indexOf(widest)
    const next = Math.max(minimumOf(index), ...shrinkable.filter((one) => one < widest))
    const reduction = Math.min(excess, widest - next || 1)
    widths[index] = widest - reduction
    excess -= reduction
  }
  return widths
}
