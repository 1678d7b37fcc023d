/** Numbers and tables as people read them. */

/** Dollars: whole ones from a hundred on, and cents; below ten of them two digits that count. */
export const money = (usd: number): string => {
  if (usd >= 100) return `$${grouped(Math.round(usd))}`
  return usd >= 0.1 || usd === 0 ? `$${usd.toFixed(2)}` : `$${Number(usd.toPrecision(2))}`
}

/** Two digits that count, and thousands apart: nothing here is known better. */
export const about = (count: number): string =>
  count >= 10 ? grouped(Math.round(Number(count.toPrecision(2)))) : String(Number(count.toPrecision(2)))

const grouped = (count: number): string => String(count).replaceAll(/\B(?=(\d{3})+$)/g, ',')

/** A count as it was measured: two digits after the point at most. */
export function exact(count: number): string {
  const [whole = '', rest] = String(Math.round(count * 100) / 100).split('.')
  return `${grouped(Number(whole))}${rest === undefined ? '' : `.${rest}`}`
}

export const percent = (share: number): string => `${Math.round(share * 100)} %`

/** A table of Markdown; columns whose names begin with a space are for numbers. */
export function table(columns: readonly string[], rows: readonly (readonly string[])[]): string {
  const cells = [columns.map((name) => name.trim()), ...rows]
  const widths = columns.map((_, column) => Math.max(...cells.map((row) => row[column]?.length ?? 0), 3))
  const isNumber = columns.map((name) => name.startsWith(' '))
  const line = (row: readonly string[]) =>
    `| ${widths.map((width, column) => pad(row[column] ?? '', width, isNumber[column] === true)).join(' | ')} |`
  const rule = `| ${widths.map((width, column) => (isNumber[column] ? `${'-'.repeat(width - 1)}:` : '-'.repeat(width))).join(' | ')} |`
  return [line(cells[0] ?? []), rule, ...rows.map(line)].join('\n')
}

const pad = (text: string, width: number, isRight: boolean): string =>
  isRight ? text.padStart(width) : text.padEnd(width)
