import { cut, oneLine, padded, widthOf } from './text.ts'

/** A column of a table. `isFlexible` columns shrink on narrow terminals. */
export interface Column<Row> {
  title: string
  of: (row: Row) => unknown
  isFlexible?: true
}

const gap = '  '
const minFlexibleWidth = 8

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

/** Formats rows as aligned columns with titles. No line is wider than `width`. */
export function tableOf<Row>(columns: readonly Column<Row>[], rows: readonly Row[], width: number): string {
  const cells = [columns.map(({ title }) => title), ...rows.map((row) => columns.map(({ of }) => cellOf(of(row))))]
  const contentWidths = columns.map((_, index) =>
    cells.reduce((most, line) => Math.max(most, widthOf(line[index] ?? '')), 0),
  )
  const widths = fitted(columns, contentWidths, width)
  const lineOf = (line: readonly string[]): string =>
    line.map((cell, index) => padded(cut(cell, widths[index] ?? 0), widths[index] ?? 0)).join(gap)
  return cells.map((line) => `${cut(lineOf(line).trimEnd(), width)}\n`).join('')
}

// Shrinks the widest flexible column until the row fits.
function fitted<Row>(columns: readonly Column<Row>[], contentWidths: readonly number[], width: number): number[] {
  const widths = [...contentWidths]
  let excess = widths.reduce((total, one) => total + one + gap.length, -gap.length) - width
  while (excess > 0) {
    const flexible = widths.map((one, index) => (columns[index]?.isFlexible && one > minFlexibleWidth ? one : 0))
    const widest = Math.max(0, ...flexible)
    if (widest === 0) break
    const next = Math.max(minFlexibleWidth, ...flexible.filter((one) => one < widest))
    const reduction = Math.min(excess, widest - next || 1)
    widths[flexible.indexOf(widest)] = widest - reduction
    excess -= reduction
  }
  return widths
}
