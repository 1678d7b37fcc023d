const shown = (cell: string | number): string => {
  if (typeof cell === 'string') return cell
  if (Number.isInteger(cell) || Math.abs(cell) >= 100) return String(Math.round(cell))
  return String(Number(cell.toPrecision(3)))
}

/** Prints a table with aligned columns; numbers have three significant digits. */
export function printTable(title: string, columns: readonly string[], rows: readonly (string | number)[][]): void {
  const table = [columns, ...rows.map((row) => row.map(shown))]
  const widths = columns.map((_, column) => Math.max(...table.map((row) => row[column]?.length ?? 0)))
  console.log(`\n${title}`)
  for (const row of table)
    console.log(
      row
        .map((cell, column) => cell.padEnd(widths[column] ?? 0))
        .join('  ')
        .trimEnd(),
    )
}
