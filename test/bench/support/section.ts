export interface Goal {
  name: string
  measured: number
  limit: number
  /** A missed target is only reported, because the value depends on the load of the machine. */
  isTarget: boolean
}

export const atMost = (name: string, measured: number, limit: number): Goal => ({
  name,
  measured,
  limit,
  isTarget: false,
})

export const asTarget = (goal: Goal): Goal => ({ ...goal, isTarget: true })

export const isMet = ({ measured, limit }: Goal): boolean => measured <= limit

export interface Section {
  title: string
  columns: readonly string[]
  rows: readonly (string | number)[][]
  goals: readonly Goal[]
}

export interface Effort {
  isQuick: boolean
}

export const describeMiss = ({ name, measured, limit, isTarget }: Goal): string =>
  `${isTarget ? 'above target' : 'MISSED'}: ${name}: ${measured}, at most ${limit}`

const format = (cell: string | number): string => {
  if (typeof cell === 'string') return cell
  if (Number.isInteger(cell) || Math.abs(cell) >= 100) return String(Math.round(cell))
  return String(Number(cell.toPrecision(3)))
}

export function printTable({ title, columns, rows }: Omit<Section, 'goals'>): void {
  const table = [columns, ...rows.map((row) => row.map(format))]
  const widths = columns.map((_, column) => Math.max(...table.map((row) => row[column]?.length ?? 0)))
  const lines = table.map((row) => row.map((cell, column) => cell.padEnd(widths[column] ?? 0)).join('  '))
  console.log(`\n${title}\n${lines.map((line) => line.trimEnd()).join('\n')}`)
}
