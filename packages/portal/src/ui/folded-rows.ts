/** Similar rows that follow each other and are shown as one. */
export interface Fold {
  /** Number of rows that are folded into the shown row. */
  count: number
  isOpen: boolean
  toggle: () => void
}

interface FoldedRowsOptions<Row> {
  total: number
  rowAt: (index: number) => Row | undefined
  rowKey: (row: Row) => string
  isFolded: ((row: Row, newer: Row) => boolean) | undefined
  /** Keys of the expanded groups: their first rows. */
  expandedKeys: ReadonlySet<string>
}

interface ShownRow {
  index: number
  key: string
  count: number
}

/** Finds the rows of a list that are shown. Rows that are not loaded are shown one by one. */
export function foldedRows<Row>({ total, rowAt, rowKey, isFolded, expandedKeys }: FoldedRowsOptions<Row>) {
  const shownRows: ShownRow[] = []
  let firstRowOfGroup: ShownRow | undefined
  let newerRow: Row | undefined
  let end = 0
  const limit = isFolded === undefined ? 0 : total
  for (let row; end < limit && (row = rowAt(end)) !== undefined; newerRow = row, end++) {
    if (firstRowOfGroup !== undefined && newerRow !== undefined && isFolded?.(row, newerRow)) {
      firstRowOfGroup.count += 1
      if (expandedKeys.has(firstRowOfGroup.key)) shownRows.push({ index: end, key: '', count: 0 })
    } else {
      firstRowOfGroup = { index: end, key: rowKey(row), count: 0 }
      shownRows.push(firstRowOfGroup)
    }
  }
  const hiddenCount = end - shownRows.length
  return {
    hiddenCount,
    /** Returns the index in the full list for a position among the shown rows. */
    indexOf: (position: number): number => shownRows[position]?.index ?? position + hiddenCount,
    foldAt: (position: number, toggle: (key: string) => void): Fold | undefined => {
      const { key = '', count = 0 } = shownRows[position] ?? {}
      return count === 0 ? undefined : { count, isOpen: expandedKeys.has(key), toggle: () => toggle(key) }
    },
  }
}
