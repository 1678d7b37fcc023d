import type { Goal, Section } from './section.ts'
import { printTable } from './table.ts'

/** Prints a section with the goals that it misses. */
export function printSection({ title, columns, rows, goals }: Section): void {
  printTable(title, columns, rows)
  for (const goal of goals) if (!goal.isMet) console.log(describeMiss(goal))
}

export const describeMiss = (goal: Goal): string =>
  `${'isHope' in goal ? 'above target' : 'MISSED'}: ${goal.name}: ${goal.measured}, at most ${goal.limit}`
